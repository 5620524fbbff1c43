/** Facts that are of use to few: what the agent printed beside its protocol, and what nothing here knows. */
import { isObject, textOf } from "../../model/json";
import type { Custom } from "../../model/wire.gen";
import { visible } from "../../text/highlight/odd";
import { Icon } from "../../ui/icon";
import { lazily } from "../../ui/lazy";
import { useFold } from "../text/fold";
import { keyOf } from "./layout";

const Tree = lazily(() => import("../cards/json").then((module) => module.JsonTree));

export function Details({ items }: { items: readonly Custom[] }) {
  const [open, toggle] = useFold(items[0]!);
  const warned = items.some((item) => item.eventName === "acted_without_asking");
  return (
    <div class={`details${open ? " call-open" : ""}`}>
      <button type="button" class="call-head details-head" aria-expanded={open} onClick={toggle}>
        <span class="call-icon">
          <Icon name={warned ? "warning" : "more"} size={15} />
        </span>
        <span class="call-line">{warned ? "The agent did something without asking" : said(items)}</span>
        <span class="call-turn">
          <Icon name="right" size={12} />
        </span>
      </button>
      {open && (
        <ul class="details-list">
          {items.map((item) => (
            <li key={keyOf(item)}>
              <p class="sub-title">{nameOf(item)}</p>
              <Tree value={item.data} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** What the hub did with the session, in words. */
const WORDS: Readonly<Record<string, string>> = {
  session_watched: "Begun elsewhere; shown from its record",
  session_adopted: "Continued under the hub",
};

function said(items: readonly Custom[]): string {
  const [first] = items;
  if (items.length > 1 || !first) return `${items.length} details`;
  return WORDS[first.eventName] ?? `Detail: ${nameOf(first)}`;
}

const nameOf = ({ eventName, data }: Custom): string => {
  const reason = eventName === "diagnostic" && isObject(data) ? textOf(data["reason"]) : "";
  return visible((reason || eventName.replace(/[_/:]+/g, " ")).slice(0, 200)) || "unnamed";
};
