/** A field for another title, in place of the old one. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { nameOf, type SessionRow } from "../../app/rows";
import { isComposing } from "../../app/shortcuts";
import { Icon } from "../../ui/icon";
import { rename } from "./deeds";

export function Rename({ row, done }: { row: SessionRow; done(): void }) {
  const hub = useHub();
  const field = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => field.current?.select(), []);
  const save = async () => {
    const title = field.current?.value.trim() ?? "";
    if (title === (row.title ?? "")) return done();
    setBusy(true);
    if (await rename(hub, row.id, title)) done();
    else setBusy(false);
  };
  const keys = (event: KeyboardEvent) => {
    if (isComposing(event)) return;
    if (event.key === "Enter") void save();
    else if (event.key === "Escape") done();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <span class="session-rename">
      <input
        ref={field}
        class="field"
        aria-label="Title of the session"
        defaultValue={row.title ?? ""}
        placeholder={nameOf(row)}
        maxLength={500}
        disabled={busy}
        onKeyDown={keys}
      />
      <button type="button" class="button icon primary" aria-label="Save" disabled={busy} onClick={() => void save()}>
        <Icon name="check" />
      </button>
    </span>
  );
}
