/** The head of an open session: what it is called, how it is, and what can be done with it. */
import { useHub, useOpen } from "../../app/context";
import { countNeeded } from "../../app/notifying";
import { hrefOf } from "../../app/route";
import { nameOf, placeOf, type SessionRow, wordOf } from "../../app/rows";
import { Icon } from "../../ui/icon";
import { FilesButton } from "../files/button";
import { SessionMenu } from "../sessions/menu";
import { useOffline } from "../sessions/offline";
import { Status } from "../sessions/status";

export function SessionHead({ row }: { row: SessionRow | null | undefined }) {
  const open = useOpen();
  const offline = useOffline();
  void open.head.value;
  const session = open.session.value;
  const fields = session?.fields;
  const title = fields?.title || (row && nameOf(row)) || fields?.projectName || "Session";
  const where = fields?.workingDirectory || row?.cwd || "";
  const status = fields?.status ?? row?.status;
  const asks = session?.lookup.pending.size ?? row?.pendingApprovals ?? 0;
  return (
    <header class="head">
      <a class="button quiet icon only-narrow" href={hrefOf({ view: "sessions" })} aria-label="All sessions">
        <Icon name="back" />
      </a>
      <div class="head-words">
        <h1 class="head-title cut" dir="auto" title={title}>
          {title}
        </h1>
        <div class="head-beside">
          {status && <Status word={offline ? "offline" : wordOf(status, asks)} />}
          {row?.archived && <span class="chip">archived</span>}
          <span class="cut" title={where}>
            {fields?.agent || row?.agent}
            {where && (
              <>
                {" · "}
                <bdi>
                  <span class="head-parent">{placeOf(where).parent}</span>
                  {placeOf(where).name}
                </bdi>
              </>
            )}
          </span>
        </div>
      </div>
      <FilesButton />
      <Needed elsewhere={open.id} />
      {row && !open.gone.value && <SessionMenu row={row} />}
    </header>
  );
}

/** How much waits for somebody. In other sessions than the one that is looked at, where no list beside it says so. */
export function Needed({ elsewhere }: { elsewhere?: string }) {
  const waiting = countNeeded(useHub(), elsewhere);
  if (elsewhere !== undefined && !waiting) return null;
  const label = waiting ? `${waiting} waiting for you${elsewhere === undefined ? "" : " elsewhere"}` : "Approvals";
  const look = elsewhere === undefined ? "" : "only-narrow";
  return (
    <a
      class={`button quiet icon counted ${look}`}
      href={hrefOf({ view: "approvals" })}
      aria-label={label}
      title={label}
    >
      <Icon name="shield" />
      {waiting > 0 && <span class="number">{waiting}</span>}
    </a>
  );
}
