/** Whether to archive a session whose agent waits or works: it goes on doing so. */
import { useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { nameOf, type SessionRow, wordOf } from "../../app/rows";
import { Dialog } from "../../ui/dialog";
import { setArchived } from "./deeds";

interface Props {
  row: SessionRow;
  close(): void;
  done?: ((row: SessionRow) => void) | undefined;
}

export function Archive({ row, close, done }: Props) {
  const hub = useHub();
  const [busy, setBusy] = useState(false);
  const waits = wordOf(row.status, row.pendingApprovals) === "waiting for you";
  const press = async () => {
    setBusy(true);
    const archived = await setArchived(hub, row, true);
    setBusy(false);
    if (!archived) return;
    close();
    done?.(row);
  };
  return (
    <Dialog title={waits ? "It waits for you" : "It is at work"} close={close}>
      <p class="dialog-words">
        <b>
          <bdi>{nameOf(row)}</bdi>
        </b>{" "}
        {waits
          ? "asks you something. Archived or not, its agent goes on waiting, and it stays in the list until that is answered."
          : "is in the middle of a turn. Archived or not, its agent goes on, and it comes back into the list when it asks you something."}
      </p>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={close}>
          Keep it
        </button>
        <button type="button" class="button primary" disabled={busy} onClick={() => void press()}>
          {busy ? "Archiving…" : "Archive anyway"}
        </button>
      </footer>
    </Dialog>
  );
}
