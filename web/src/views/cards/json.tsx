/** Any JSON as a tree that unfolds. What is folded is not drawn, so neither depth nor length costs anything. */
import { useState } from "preact/hooks";
import { isObject } from "../../model/json";
import type { Json } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { Seen } from "../approvals/hidden";

/** Entries of one object or list that are shown before somebody asks for more, and characters of a text. */
const ENTRIES = 50;
const LETTERS = 400;

export function JsonTree({ value }: { value: Json }) {
  return (
    <div class="json">
      {isObject(value) || Array.isArray(value) ? <Entries value={value} depth={0} /> : <Leaf value={value} />}
    </div>
  );
}

function Entries({ value, depth }: { value: Json[] | { [key: string]: Json }; depth: number }) {
  const [shown, setShown] = useState(ENTRIES);
  const all = Object.entries(value);
  return (
    <ul class="json-entries">
      {all.slice(0, shown).map(([name, inner]) => (
        <Entry key={name} name={name} value={inner} depth={depth} />
      ))}
      {all.length === 0 && <li class="muted">{Array.isArray(value) ? "empty list" : "nothing"}</li>}
      {all.length > shown && (
        <li>
          <button type="button" class="more" onClick={() => setShown(shown * 4)}>
            {all.length - shown} more
          </button>
        </li>
      )}
    </ul>
  );
}

function Entry({ name, value, depth }: { name: string; value: Json; depth: number }) {
  const nested = isObject(value) || Array.isArray(value);
  const size = nested ? Object.keys(value).length : 0;
  const [open, setOpen] = useState(nested && depth < 2 && size > 0 && size <= 8);
  if (!nested) {
    return (
      <li class="json-entry">
        <span class="json-name">
          <Seen text={name} />
        </span>{" "}
        <Leaf value={value} />
      </li>
    );
  }
  return (
    <li class={`json-entry${open ? " json-open" : ""}`}>
      <button type="button" class="json-fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="right" size={10} />
        <span class="json-name">
          <Seen text={name} />
        </span>
        <span class="muted">
          {Array.isArray(value) ? `${size} in a list` : size === 1 ? "1 field" : `${size} fields`}
        </span>
      </button>
      {open && <Entries value={value} depth={depth + 1} />}
    </li>
  );
}

function Leaf({ value }: { value: Json }) {
  const [all, setAll] = useState(false);
  if (typeof value !== "string") return <span class="json-value">{String(value)}</span>;
  const cut = !all && value.length > LETTERS;
  return (
    <>
      <span class={value.includes("\n") ? "json-text json-lines" : "json-text"}>
        <Seen text={cut ? value.slice(0, LETTERS) : value} />
      </span>
      {cut && (
        <button type="button" class="more" onClick={() => setAll(true)}>
          … {value.length - LETTERS} more characters
        </button>
      )}
    </>
  );
}
