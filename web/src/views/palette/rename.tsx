/** Another title for the session that is open. */
import { useHub } from "../../app/context";
import { route } from "../../app/route";
import { Dialog } from "../../ui/dialog";
import { Rename } from "../sessions/rename";

export function RenameOpen({ close }: { close(): void }) {
  const hub = useHub();
  const at = route.value;
  const row = "id" in at ? hub.row(at.id) : undefined;
  return (
    row && (
      <Dialog title="Rename this session" close={close}>
        <Rename row={row} done={close} />
      </Dialog>
    )
  );
}
