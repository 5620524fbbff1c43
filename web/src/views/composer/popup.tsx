/** Suggestions above the field: commands of the agent, files of the session. The focus stays in the field. */
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "../../ui/icon";
import type { Suggestion } from "./completion";

interface Props {
  id: string;
  kind: "command" | "file";
  list: readonly Suggestion[];
  chosen: number;
  /** Something is still being looked for. */
  looking: boolean;
  take(suggestion: Suggestion): void;
}

export const optionId = (id: string, place: number): string => `${id}-${place}`;

export function Popup({ id, kind, list, chosen, looking, take }: Props) {
  const box = useRef<HTMLUListElement>(null);
  useEffect(() => {
    const row = box.current?.children[chosen];
    if (!(row instanceof HTMLElement) || !box.current) return;
    const { scrollTop, clientHeight } = box.current;
    if (row.offsetTop < scrollTop) box.current.scrollTop = row.offsetTop;
    else if (row.offsetTop + row.offsetHeight > scrollTop + clientHeight) {
      box.current.scrollTop = row.offsetTop + row.offsetHeight - clientHeight;
    }
  }, [chosen, list]);
  return (
    <div class="composer-popup">
      <ul ref={box} id={id} role="listbox" aria-label={kind === "command" ? "Commands" : "Files"}>
        {list.map((one, place) => (
          <li
            key={one.insert}
            id={optionId(id, place)}
            role="option"
            aria-selected={place === chosen}
            // before the field would lose the focus
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => take(one)}
          >
            {kind === "file" && <Icon name={one.more ? "folder" : "file"} size={14} />}
            <span class={`composer-name cut ${kind === "command" ? "mono" : ""}`}>{one.title}</span>
            <span class="muted small cut">{one.about}</span>
          </li>
        ))}
      </ul>
      {!list.length && <p class="small muted">{looking ? "Looking…" : "Nothing fits"}</p>}
    </div>
  );
}
