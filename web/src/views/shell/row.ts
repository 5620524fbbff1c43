/** What the hub's list tells of the session that is open. */
import { useEffect, useState } from "preact/hooks";
import { path } from "../../app/api";
import { useHub } from "../../app/context";
import type { SessionRow } from "../../app/rows";

/**
 * Its row of the list, null where nothing is known of it. One that the list does not have, as it is archived or of long
 * ago, is read by itself, and undefined meanwhile.
 */
export function useRow(id: string): SessionRow | null | undefined {
  const hub = useHub();
  const listed = hub.row(id) ?? hub.archived.value.get(id);
  const missing = hub.rows.value !== null && !listed;
  const [read, setRead] = useState<SessionRow | null>();
  useEffect(() => {
    if (!missing) return undefined;
    let here = true;
    hub.api
      .get<SessionRow>(`${path("sessions", id)}?items=false`)
      .then((found) => here && setRead({ ...found, pendingApprovals: 0, queueLength: null }))
      .catch(() => here && setRead(null));
    return () => {
      here = false;
    };
  }, [id, missing]);
  return listed ?? (missing ? read : null);
}
