/** The sessions: beside the open one on a wide screen, the first page on a phone. */
import { useRef, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { hrefOf, route } from "../../app/route";
import { attempt } from "../../app/toasts";
import { isUnread } from "../../app/unread";
import { Copy } from "../../ui/copy";
import { Icon } from "../../ui/icon";
import { useNow } from "../../ui/now";
import { FoundSection } from "../found/section";
import { useArchived } from "./archived";
import { type Filter, filtered, isFiltered, NO_FILTER } from "./filter";
import { Filters } from "./filters";
import { arrows, useListKeys } from "./keys";
import { useOffline } from "./offline";
import { Row } from "./row";
import { Hits, useSearch } from "./search";

/** Milliseconds; how long ago things were is told in minutes. */
const EVERY = 30_000;

export function SessionList() {
  const hub = useHub();
  const now = useNow(true, EVERY);
  const offline = useOffline();
  const list = useRef<HTMLDivElement>(null);
  const [filter, setFilter] = useState<Filter>(NO_FILTER);
  const [inArchive, setInArchive] = useState(false);
  const found = useSearch(filter.text);
  const archived = useArchived(inArchive);
  useListKeys(list);

  const all = inArchive ? archived.rows : hub.rows.value && hub.sessions.value;
  const titled = inArchive ? [] : (found?.titled ?? []);
  const rows = [...filtered(all ?? [], filter), ...(filter.text && !isFiltered(filter) ? titled : [])];
  const hasHits = !inArchive && (found?.found.length ?? 0) > 0;
  const at = route.value;
  const openId = "id" in at ? at.id : null;
  const moved = inArchive ? archived.drop : undefined;
  return (
    <div class="sessions">
      <Filters
        filter={filter}
        set={setFilter}
        rows={all ?? []}
        archived={{ on: inArchive, set: setInArchive }}
        list={list}
      />
      <div class="session-scroll" ref={list} onKeyDown={(event) => arrows(event, list.current)}>
        {all === null ? (
          <Waiting failed={inArchive ? archived.failed : null} />
        ) : (
          <ul class="session-rows">
            {rows.map((row) => (
              <Row
                key={row.id}
                row={row}
                current={row.id === openId}
                unread={isUnread(row)}
                offline={offline}
                now={now}
                moved={moved}
              />
            ))}
          </ul>
        )}
        {all !== null && !rows.length && !(hasHits && !isFiltered(filter)) && (
          <Nothing filter={filter} archive={inArchive} clear={() => setFilter(NO_FILTER)} />
        )}
        {!filter.text && (inArchive ? archived.next : hub.more.value) !== null && (
          <Older load={() => (inArchive ? archived.more() : hub.older())} />
        )}
        {!inArchive && <Hits text={filter.text} state={found} />}
        {!inArchive && !offline && all !== null && <FoundSection text={filter.text} />}
      </div>
    </div>
  );
}

/** It is not known yet whether there are any. */
function Waiting({ failed }: { failed: string | null }) {
  if (failed) return <p class="session-note small">The archive could not be read: {failed}.</p>;
  return (
    <div class="session-bones" role="status">
      <span class="aside">Loading the sessions</span>
      {[72, 54, 63, 45, 58].map((width) => (
        <p key={width} aria-hidden="true">
          <i style={{ width: `${width}%` }} />
          <i style={{ width: `${width - 20}%` }} />
        </p>
      ))}
    </div>
  );
}

function Nothing({ filter, archive, clear }: { filter: Filter; archive: boolean; clear(): void }) {
  const hub = useHub();
  if (filter.text || isFiltered(filter)) {
    return (
      <div class="session-empty">
        <p>{filter.text ? "No session is called so." : "No session is like that now."}</p>
        {isFiltered(filter) && (
          <button type="button" class="button" onClick={clear}>
            Show all
          </button>
        )}
      </div>
    );
  }
  if (archive) return <p class="session-empty muted">Nothing is archived.</p>;
  const line = 'pilothouse run "What does this project do?"';
  return (
    <div class="session-empty">
      <p>There is no session yet.</p>
      {hub.may("prompt") && (
        <a class="button primary" href={hrefOf({ view: "new" })}>
          <Icon name="plus" />
          New session
        </a>
      )}
      <p class="small muted">or, in a terminal on the host:</p>
      <p class="session-line">
        <code>{line}</code>
        <Copy text={line} label="Copy the command" />
      </p>
    </div>
  );
}

function Older({ load }: { load(): Promise<void> }) {
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    await attempt("Could not load older sessions", load);
    setBusy(false);
  };
  return (
    <button type="button" class="button quiet session-older" disabled={busy} onClick={() => void press()}>
      {busy ? "Loading…" : "Load older"}
    </button>
  );
}
