/** A field for a directory of the host: recent ones at once, others as they are typed. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { words } from "../../app/hub";
import { isComposing } from "../../app/shortcuts";
import { Icon } from "../../ui/icon";
import { projectOf } from "./filter";

interface Entry {
  name: string;
  path: string;
  isRepository: boolean;
}

interface Listing {
  path: string;
  entries: Entry[];
  truncated: boolean;
  recent: string[];
}

interface Option {
  path: string;
  name: string;
  kind: "recent" | "entry";
  isRepository: boolean;
}

interface Props {
  id: string;
  value: string;
  set(value: string): void;
  invalid: boolean;
  describedBy: string;
}

const PAUSE = 120;
const MOST = 50;
const RECENT = 6;

export function Directory({ id, value, set, invalid, describedBy }: Props) {
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  // what stood there before is no wish yet: everything is offered
  const [typed, setTyped] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const { options, trouble } = useOptions(typed ? value : "", open);
  const choose = (option: Option) => {
    // into a directory one goes on; a recent one is what was meant
    set(option.kind === "entry" ? `${option.path.replace(/\/$/, "")}/` : option.path);
    setOpen(option.kind === "entry");
    setTyped(true);
    setActive(-1);
    field.current?.focus();
  };
  const keys = (event: KeyboardEvent) => {
    if (isComposing(event)) return;
    const picked = options[active];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      setOpen(true);
      if (open && options.length) setActive(moved(active, event.key === "ArrowDown" ? 1 : -1, options.length));
    } else if (open && event.key === "Enter" && picked && !event.ctrlKey && !event.metaKey) choose(picked);
    else if (open && event.key === "Tab" && !event.shiftKey && options.length && !value.endsWith("/")) {
      const first = picked ?? options.find((one) => one.kind === "entry");
      if (!first) return;
      choose(first);
    } else if (open && event.key === "Escape") setOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const list = `${id}-list`;
  return (
    <div class="new-directory">
      <input
        ref={field}
        id={id}
        class="field mono"
        role="combobox"
        aria-expanded={open && options.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={open && active >= 0 ? `${list}-${active}` : undefined}
        aria-invalid={invalid}
        aria-describedby={describedBy}
        value={value}
        placeholder="/home/you/project"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onClick={() => setOpen(true)}
        onBlur={() => [setOpen(false), setTyped(false)]}
        onInput={(event) => {
          set(event.currentTarget.value);
          setOpen(true);
          setTyped(true);
          setActive(-1);
        }}
        onKeyDown={keys}
      />
      {open && (options.length > 0 || trouble) && (
        // the field keeps the focus while one is chosen by mouse or finger
        <div class="new-options" onMouseDown={(event) => event.preventDefault()}>
          {trouble && <p class="small muted new-trouble">{trouble}</p>}
          <ul id={list} role="listbox" aria-label="Directories">
            {options.map((option, at) => (
              <li
                key={`${option.kind}${option.path}`}
                id={`${list}-${at}`}
                role="option"
                aria-selected={at === active}
                class="new-option"
                onClick={() => choose(option)}
              >
                <Icon name={option.kind === "recent" ? "clock" : option.isRepository ? "git" : "folder"} />
                <bdi class="cut">{option.name}</bdi>
                {option.kind === "recent" && <bdi class="cut tiny muted mono">{option.path}</bdi>}
                {option.isRepository && <span class="aside">, a repository</span>}
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

const moved = (at: number, by: number, length: number): number =>
  at < 0 && by < 0 ? length - 1 : (at + by + length) % length;

function useOptions(value: string, wanted: boolean): { options: Option[]; trouble: string | null } {
  const hub = useHub();
  const [listing, setListing] = useState<Listing | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  useEffect(() => {
    if (!wanted) return;
    let here = true;
    const look = async () => {
      try {
        const found = await hub.api.get<Listing>(`directories?path=${encodeURIComponent(value.trim())}&limit=${MOST}`);
        if (here) [setListing(found), setTrouble(null)];
      } catch (error) {
        if (here) [setListing(null), setTrouble(words(error))];
      }
    };
    const timer = setTimeout(() => void look(), value ? PAUSE : 0);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [value, wanted]);
  return { options: optionsOf(value, listing, recentOf(hub.sessions.peek())), trouble };
}

const recentOf = (rows: readonly { cwd: string; updated: string }[]): string[] => [
  ...new Set([...rows].sort((one, other) => (one.updated < other.updated ? 1 : -1)).map((row) => row.cwd)),
];

/** Recent ones first, as far as they have what was typed. */
function optionsOf(value: string, listing: Listing | null, own: readonly string[]): Option[] {
  const typed = value.trim().replace(/\/+$/, "").toLowerCase();
  const known = [...new Set([...(listing?.recent ?? []), ...own])];
  const completing = typed.includes("/") || typed.startsWith("~");
  const listed = new Set(completing ? listing?.entries.map((one) => one.path) : []);
  const recent = known
    .filter((path) => !listed.has(path))
    .filter((path) => path !== value && path.toLowerCase().includes(typed) && !typed.startsWith("~"))
    .slice(0, RECENT)
    .map((path): Option => ({ path, name: projectOf(path), kind: "recent", isRepository: false }));
  const entries = (listing?.entries ?? [])
    .filter((one) => one.path !== value)
    .map((one): Option => ({ ...one, kind: "entry" }));
  return [...recent, ...entries];
}

/** The directory of a path that is typed with a slash at its end, which completion leaves there. */
export const directoryOf = (value: string): string => value.trim().replace(/(?<=.)\/+$/, "");
