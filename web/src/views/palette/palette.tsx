/** The palette: a few letters lead to any session and any action. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { isComposing } from "../../app/shortcuts";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { Keys } from "../../ui/keys";
import { Status } from "../sessions/status";
import { entriesOf, type Fit, fitting } from "./entries";
import { pieces } from "./fuzzy";

export function Palette({ close }: { close(): void }) {
  const hub = useHub();
  const [wanted, setWanted] = useState("");
  const [active, setActive] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const fits = fitting(entriesOf(hub), wanted);
  const at = Math.min(active, fits.length - 1);
  useEffect(() => show(list.current, at), [at]);
  const run = (fit: Fit | undefined) => {
    if (!fit) return;
    close();
    fit.entry.run();
  };
  const keys = (event: KeyboardEvent) => {
    if (isComposing(event)) return;
    const step = STEPS[event.key];
    if (step) setActive((at + step + fits.length) % Math.max(1, fits.length));
    else if (event.key === "Enter") run(fits[at]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Find a session or an action" kind="palette" close={close}>
      <div class="palette-field">
        <Icon name="search" />
        <input
          ref={(field) => field?.focus()}
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={at >= 0 ? `palette-${at}` : undefined}
          aria-autocomplete="list"
          aria-label="Find a session or an action"
          placeholder="Find a session or an action"
          autocomplete="off"
          spellcheck={false}
          value={wanted}
          onInput={(event) => {
            setWanted(event.currentTarget.value);
            setActive(0);
          }}
          onKeyDown={keys}
        />
        <button type="button" class="button quiet palette-close" onClick={close}>
          <kbd>Esc</kbd>
        </button>
      </div>
      <ul ref={list} id="palette-list" class="palette-list" role="listbox" aria-label="Found">
        {fits.map((fit, index) => (
          <Option
            key={fit.entry.id}
            fit={fit}
            index={index}
            active={index === at}
            head={headOf(fits, index, wanted)}
            run={() => run(fit)}
          />
        ))}
      </ul>
      {!fits.length && (
        <p class="palette-none muted">
          Nothing is called so. The search in the list of sessions also finds words of conversations.
        </p>
      )}
    </Dialog>
  );
}

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

/** The name of a group at its first entry; what was searched for is sorted by how well it fits. */
const headOf = (fits: readonly Fit[], index: number, wanted: string): string | null => {
  const group = fits[index]?.entry.group ?? null;
  return wanted.trim() || group === fits[index - 1]?.entry.group ? null : group;
};

// the list scrolls by itself; the page under it must not
function show(list: HTMLElement | null, at: number): void {
  const option = list?.querySelector<HTMLElement>(`#palette-${at}`);
  if (!list || !option) return;
  const [top, bottom] = [option.offsetTop - list.offsetTop, option.offsetTop - list.offsetTop + option.offsetHeight];
  if (at === 0) list.scrollTop = 0;
  else if (top < list.scrollTop) list.scrollTop = top;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
}

interface OptionProps {
  fit: Fit;
  index: number;
  active: boolean;
  head: string | null;
  run(): void;
}

function Option({ fit: { entry, at }, index, active, head, run }: OptionProps) {
  return (
    <>
      {head && (
        <li class="palette-group tiny" role="presentation">
          {head}
        </li>
      )}
      <li id={`palette-${index}`} class="palette-option" role="option" aria-selected={active} onClick={run}>
        <Icon name={entry.icon} />
        <bdi class="cut palette-text">
          {pieces(entry.text, at).map((piece, place) =>
            piece.hit ? <mark key={place}>{piece.text}</mark> : piece.text,
          )}
        </bdi>
        {entry.under && <bdi class="cut tiny muted palette-under">{entry.under}</bdi>}
        {entry.word && <Status word={entry.word} />}
        {entry.keys && (
          <span class="palette-keys">
            <Keys keys={entry.keys} />
          </span>
        )}
      </li>
    </>
  );
}
