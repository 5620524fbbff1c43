/** What the palette asks about the session that is open. */
import type { ComponentChildren } from "preact";
import { useHub } from "../../app/context";
import { route } from "../../app/route";
import type { SessionRow } from "../../app/rows";
import { Dialog } from "../../ui/dialog";
import { Archive } from "../sessions/archive";
import { Rename } from "../sessions/rename";

interface Props {
  close(): void;
}

/** Another title. */
export const RenameOpen = ({ close }: Props): ComponentChildren =>
  withOpen((row) => (
    <Dialog title="Rename this session" close={close}>
      <Rename row={row} done={close} />
    </Dialog>
  ));

export const ArchiveOpen = ({ close }: Props): ComponentChildren =>
  withOpen((row) => <Archive row={row} close={close} />);

function withOpen(draw: (row: SessionRow) => ComponentChildren): ComponentChildren {
  const hub = useHub();
  const at = route.value;
  const row = "id" in at ? hub.row(at.id) : undefined;
  return row && draw(row);
}
