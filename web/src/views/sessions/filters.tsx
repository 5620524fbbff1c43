/** What narrows the list: words, who needs somebody, agent and project. */
import { useRef } from "preact/hooks";
import { useHub } from "../../app/context";
import { hrefOf } from "../../app/route";
import type { SessionRow } from "../../app/rows";
import { isComposing, useShortcuts } from "../../app/shortcuts";
import { Icon } from "../../ui/icon";
import { choicesOf, countShown, type Filter, projectOf } from "./filter";
import { focusFirst, openFirst, type Scroll } from "./keys";

interface Props {
  filter: Filter;
  set(filter: Filter): void;
  rows: readonly SessionRow[];
  archived: { on: boolean; set(on: boolean): void };
  list: Scroll;
}

const SHOW: readonly [Filter["show"], string][] = [
  ["all", "All"],
  ["needs", "Needs me"],
  ["working", "Working"],
];

export function Filters({ filter, set, rows, archived, list }: Props) {
  const hub = useHub();
  const field = useRef<HTMLInputElement>(null);
  useShortcuts([{ keys: "/", label: "Search", group: "Sessions", run: () => field.current?.focus() }]);
  const keys = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") focusFirst(list.current);
    else if (event.key === "Enter" && filter.text && !isComposing(event)) openFirst(list.current);
    else if (event.key === "Escape" && filter.text) set({ ...filter, text: "" });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="session-filters">
      <div class="session-head">
        <label class="session-search">
          <Icon name="search" size={14} />
          <span class="aside">Search sessions and conversations</span>
          <input
            ref={field}
            type="search"
            class="field"
            placeholder="Search"
            value={filter.text}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => set({ ...filter, text: event.currentTarget.value })}
            onKeyDown={keys}
          />
        </label>
        {hub.may("prompt") && (
          <a class="button" href={hrefOf({ view: "new" })}>
            <Icon name="plus" />
            New
          </a>
        )}
      </div>
      <div class="session-chips" role="group" aria-label="Show">
        {SHOW.map(([show, name]) => {
          const count = show === "all" ? 0 : countShown(rows, show);
          return (
            <button
              key={show}
              type="button"
              class="session-chip"
              aria-pressed={filter.show === show}
              onClick={() => set({ ...filter, show })}
            >
              {name}
              {count > 0 && <b class={show}>{count}</b>}
            </button>
          );
        })}
        <Choice
          label="Agent"
          value={filter.agent}
          choices={choicesOf(rows, "agent")}
          set={(agent) => set({ ...filter, agent })}
        />
        <Choice
          label="Project"
          value={filter.project}
          choices={choicesOf(rows, "cwd")}
          name={projectOf}
          set={(project) => set({ ...filter, project })}
        />
        <button
          type="button"
          class="session-chip"
          aria-pressed={archived.on}
          onClick={() => archived.set(!archived.on)}
        >
          Archived
        </button>
      </div>
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  choices: string[];
  name?(value: string): string;
  set(value: string): void;
}

/** Nothing to choose from one. */
function Choice({ label, value, choices, name = (one) => one, set }: ChoiceProps) {
  if (choices.length < 2 && !value) return null;
  return (
    <select
      class={`session-chip${value ? " on" : ""}`}
      aria-label={label}
      value={value}
      onChange={(event) => set(event.currentTarget.value)}
    >
      <option value="">{label}</option>
      {choices.map((choice) => (
        <option key={choice} value={choice}>
          {name(choice)}
        </option>
      ))}
    </select>
  );
}
