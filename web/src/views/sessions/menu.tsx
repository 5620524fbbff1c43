/** What can be done with a session, at its row and at its head. */
import { useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { go } from "../../app/route";
import { nameOf, type SessionRow } from "../../app/rows";
import { Dialog } from "../../ui/dialog";
import { type Choice, Menu } from "../../ui/menu";
import { Archive } from "./archive";
import { copyId, isRunning, remove, setArchived, stopTurn } from "./deeds";
import { Rename } from "./rename";

interface Props {
  row: SessionRow;
  /** Begin to rename it in place; without this a dialog asks. */
  rename?: (() => void) | undefined;
  /** It was archived, brought back or deleted. */
  moved?: ((row: SessionRow) => void) | undefined;
}

export function SessionMenu({ row, rename, moved }: Props) {
  const hub = useHub();
  const [asks, setAsks] = useState<"title" | "archive" | "delete" | null>(null);
  const close = () => setAsks(null);
  const choices = (): Choice[] => {
    const archived = row.archived !== null;
    const all: (Choice | false)[] = [
      hub.may("prompt") && isRunning(row) && { label: "Stop", icon: "stop", run: () => void stopTurn(hub, row.id) },
      hub.may("prompt") && { label: "Rename", icon: "edit", run: rename ?? (() => setAsks("title")) },
      hub.may("prompt") && {
        label: archived ? "Bring back" : "Archive",
        icon: "archive",
        run: () => {
          if (!archived && isRunning(row)) setAsks("archive");
          else void setArchived(hub, row, !archived).then((done) => done && moved?.(row));
        },
      },
      { label: "Replay", icon: "play", run: () => go({ view: "replay", id: row.id }) },
      { label: "Copy id", icon: "copy", run: () => void copyId(row.id) },
      hub.may("admin") && { label: "Delete…", icon: "cross", danger: true, run: () => setAsks("delete") },
    ];
    return all.filter((one) => one !== false);
  };
  return (
    <>
      <Menu label={`Actions for ${nameOf(row)}`} choices={choices} />
      {asks === "archive" && <Archive row={row} close={close} done={moved} />}
      {asks === "delete" && <Delete row={row} close={close} gone={moved} />}
      {asks === "title" && (
        <Dialog title="Rename" close={close}>
          <Rename row={row} done={close} />
        </Dialog>
      )}
    </>
  );
}

interface DeleteProps {
  row: SessionRow;
  close(): void;
  gone: Props["moved"];
}

function Delete({ row, close, gone }: DeleteProps) {
  const hub = useHub();
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    const done = await remove(hub, row.id);
    setBusy(false);
    if (!done) return;
    close();
    gone?.(row);
  };
  return (
    <Dialog title="Delete this session?" close={close}>
      <p class="dialog-words">
        <b>
          <bdi>{nameOf(row)}</bdi>
        </b>{" "}
        ends, and everything said and done in it is deleted for good. Files of the project stay as they are. To only put
        it aside, archive it.
      </p>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={close}>
          Keep it
        </button>
        <button type="button" class="button danger" disabled={busy} onClick={() => void press()}>
          {busy ? "Deleting…" : "Delete"}
        </button>
      </footer>
    </Dialog>
  );
}
