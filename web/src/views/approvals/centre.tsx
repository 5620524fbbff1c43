/** All that waits for a decision, in all sessions, and what was decided last and by whom. */
import { useEffect, useState } from "preact/hooks";
import { path } from "../../app/api";
import { useHub } from "../../app/context";
import { isOwn } from "../../app/deciding";
import { words } from "../../app/hub";
import { hrefOf } from "../../app/route";
import type { ApprovalRow, SessionRow } from "../../app/rows";
import type { Question } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { ago, moment } from "../../ui/time";
import { useOffline } from "../sessions/offline";
import { ApprovalCard } from "./card";
import { Seen } from "./hidden";
import { RiskChip } from "./risk";
import { asked, sessionName, verdict } from "./words";

const RECENT = 30;

export function ApprovalCentre() {
  const hub = useHub();
  const groups = grouped(hub.approvals.value);
  const keyed = hub.approvals.value.length === 1;
  const asking = hub.sessions.value.filter(({ status }) => status === "waiting_for_input");
  return (
    <div class="centre">
      {!groups.size && !asking.length && <None />}
      {[...groups].map(([sessionId, rows]) => (
        <section key={sessionId} class="centre-group" aria-label={sessionName(hub.row(sessionId))}>
          <SessionLink id={sessionId} />
          {rows.map((row) => (
            <ApprovalCard key={row.id} approval={row} keys={keyed} />
          ))}
        </section>
      ))}
      {asking.map((row) => (
        <Asking key={row.id} row={row} />
      ))}
      <Recent />
    </div>
  );
}

/** Before the hub has said what waits, nobody knows whether anything does. */
function None() {
  const offline = useOffline();
  if (useHub().me.value) {
    return (
      <p class="centre-none muted">
        <Icon name="check" /> Nobody waits for you.
      </p>
    );
  }
  if (offline) return <p class="centre-none muted">What waits for you is shown as soon as the hub is reached.</p>;
  return <p class="new-bone" role="status" aria-label="Loading what waits" />;
}

/** A question is known to its session alone, which is where it is answered. */
function Asking({ row }: { row: SessionRow }) {
  const hub = useHub();
  const [questions, setQuestions] = useState<readonly Question[]>([]);
  useEffect(() => {
    hub.api
      .get<{ pendingQuestions?: Question[] }>(`${path("sessions", row.id)}?items=false`)
      .then(({ pendingQuestions = [] }) => setQuestions(pendingQuestions))
      .catch(() => {}); // that it asks is known all the same
  }, [row.id, row.seq]);
  const said = questions.map(({ question }) => question).filter(Boolean);
  return (
    <section class="centre-group" aria-label={`Question in ${sessionName(row)}`}>
      <SessionLink id={row.id} />
      <div class="ask card centre-question">
        <Icon name="question" />
        <p>{said.length ? <Seen text={said.join(" · ")} /> : "Asks you something."}</p>
        <a class="button" href={hrefOf({ view: "session", id: row.id })}>
          Answer
        </a>
      </div>
    </section>
  );
}

function SessionLink({ id }: { id: string }) {
  const row = useHub().row(id);
  return (
    <h2 class="centre-session">
      <a href={hrefOf({ view: "session", id })}>
        <bdi>{sessionName(row)}</bdi>
      </a>
      {row && <span class="muted small">{row.agent}</span>}
    </h2>
  );
}

function Recent() {
  const hub = useHub();
  const [read, setRead] = useState<readonly ApprovalRow[] | null>(null);
  const [failed, setFailed] = useState("");
  const phase = hub.status.value.phase;
  useEffect(() => {
    hub.api
      .get<{ approvals: ApprovalRow[] }>("approvals?state=all")
      .then(({ approvals }) => {
        setRead(approvals);
        setFailed("");
      })
      .catch((error: unknown) => setFailed(words(error)));
  }, [phase === "live"]);
  const all = new Map((read ?? []).map((row) => [row.id, row]));
  for (const row of hub.decided.value.values()) all.set(row.id, row);
  const rows = [...all.values()]
    .filter(({ state }) => state === "resolved")
    .sort((one, other) => ((one.resolved ?? "") < (other.resolved ?? "") ? 1 : -1))
    .slice(0, RECENT);
  return (
    <section class="centre-group" aria-label="Decided">
      <h2 class="centre-session">Decided lately</h2>
      {failed && <p class="small muted">They could not be read: {failed}</p>}
      {!failed && read && !rows.length && <p class="small muted">Nothing yet.</p>}
      <ul class="centre-list">
        {rows.map((row) => (
          <Done key={row.id} row={row} />
        ))}
      </ul>
    </section>
  );
}

function Done({ row }: { row: ApprovalRow }) {
  const hub = useHub();
  const session = hub.row(row.sessionId);
  const { allowed, text, reason } = verdict(row, isOwn(row, hub.me.value?.name));
  return (
    <li class={`centre-row ${allowed ? "allowed" : "denied"}`}>
      <Icon name={allowed ? "check" : "cross"} size={14} />
      <span class="centre-what">
        <span class="cut" title={row.request.preview?.type === "command" ? row.request.preview.command : undefined}>
          {row.request.preview?.type === "command" ? (
            <code>{row.request.preview.command.split("\n", 1)[0]}</code>
          ) : (
            asked(row, session?.cwd)
          )}
        </span>
        <span class="small muted cut">
          {text}
          {reason && `: ${reason}`}
        </span>
      </span>
      <RiskChip level={row.request.riskLevel} />
      <span class="small muted centre-when">
        <a href={hrefOf({ view: "session", id: row.sessionId })}>{sessionName(session)}</a>
        <time dateTime={row.resolved ?? ""} title={moment(row.resolved ?? "")}>
          {ago(row.resolved ?? "")}
        </time>
      </span>
    </li>
  );
}

function grouped(rows: readonly ApprovalRow[]): Map<string, ApprovalRow[]> {
  const groups = new Map<string, ApprovalRow[]>();
  for (const row of rows) groups.set(row.sessionId, [...(groups.get(row.sessionId) ?? []), row]);
  return groups;
}
