/** One session in the list. */
import { useState } from "preact/hooks";
import { hrefOf } from "../../app/route";
import { nameOf, type SessionRow, wordOf } from "../../app/rows";
import { ago, moment } from "../../ui/time";
import { projectOf } from "./filter";
import { SessionMenu } from "./menu";
import { Rename } from "./rename";
import { Status } from "./status";

interface Props {
  row: SessionRow;
  current: boolean;
  unread: boolean;
  offline: boolean;
  now: number;
  /** It was archived, brought back or deleted. */
  moved?: ((row: SessionRow) => void) | undefined;
}

export function Row({ row, current, unread, offline, now, moved }: Props) {
  const [renaming, setRenaming] = useState(false);
  const word = offline ? "offline" : wordOf(row.status, row.pendingApprovals);
  return (
    <li class={`session-row${unread ? " news" : ""}${current ? " current" : ""}`}>
      {renaming ? (
        <Rename row={row} done={() => setRenaming(false)} />
      ) : (
        <a
          class="session-link"
          href={hrefOf({ view: "session", id: row.id })}
          aria-current={current ? "page" : undefined}
        >
          <span class="session-top">
            <bdi class="session-name cut">{nameOf(row)}</bdi>
            {unread && <span class="aside">, something new,</span>}
            <time class="session-ago tiny muted" dateTime={row.updated} title={moment(row.updated)}>
              {ago(row.updated, now)}
            </time>
          </span>
          <span class="session-under tiny muted">
            <span class="cut">
              {row.agent} · <bdi title={row.cwd}>{projectOf(row.cwd)}</bdi>
              {row.watched && " · watched"}
              {row.archived !== null && " · archived"}
            </span>
            <Status word={word} waiting={row.pendingApprovals} />
          </span>
        </a>
      )}
      <SessionMenu row={row} rename={() => setRenaming(true)} moved={moved} />
    </li>
  );
}
