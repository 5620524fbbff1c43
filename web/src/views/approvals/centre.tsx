/** The pending approvals and questions of all sessions, and the recent decisions. */
import { useEffect, useRef, useState } from "preact/hooks";
import { path } from "../../app/api";
import { summarizeRequest } from "../../app/approvals";
import { useHub } from "../../app/context";
import { isOwn } from "../../app/deciding";
import { words } from "../../app/hub";
import { hrefOf } from "../../app/route";
import type { ApprovalRow, SessionRow } from "../../app/rows";
import type { Question } from "../../model/wire.gen";
import { visible } from "../../text/highlight/odd";
import { Icon } from "../../ui/icon";
import { ago, moment } from "../../ui/time";
import { useOffline } from "../sessions/offline";
import { ApprovalCard } from "./card";
import { Seen, Shortened } from "./hidden";
import { linkedQuestions, ownQuestions } from "./pending";
import { RiskChip } from "./risk";
import { sessionName, verdict } from "./words";

const RECENT = 30;
/** Characters of a command in a row, and of a question; both ends are shown. */
const LONGEST_SUMMARY = 160;
const LONGEST_QUESTION = 400;
const WAITING: ReadonlySet<string> = new Set(["waiting_for_approval", "waiting_for_input"]);

export function ApprovalCentre() {
  const hub = useHub();
  const approvals = groupBySession(hub.approvals.value);
  const waiting = hub.sessions.value.filter(({ id, status }) => WAITING.has(status) && !approvals.has(id));
  const ids = [...approvals.keys(), ...waiting.map(({ id }) => id)];
  const questions = useQuestions(ids);
  const groups = ids
    .map((id) => ({ id, approvals: approvals.get(id) ?? [], questions: questions.get(id) ?? null }))
    .filter((group) => !isEmpty(group, hub.row(group.id)));
  return (
    <div class="centre">
      {!groups.length && <None />}
      {groups.map((group) => (
        <SessionGroup key={group.id} {...group} keyed={hub.approvals.value.length === 1} />
      ))}
      <Recent />
    </div>
  );
}

interface Group {
  id: string;
  approvals: readonly ApprovalRow[];
  /** The pending questions of the session; null until they are known. */
  questions: readonly Question[] | null;
}

const isEmpty = ({ approvals, questions }: Group, row: SessionRow | undefined): boolean =>
  !approvals.length && !questions?.length && row?.status !== "waiting_for_input";

/** The pending questions of some sessions. The list of sessions does not have them. */
function useQuestions(ids: readonly string[]): ReadonlyMap<string, readonly Question[]> {
  const hub = useHub();
  const [found, setFound] = useState<ReadonlyMap<string, readonly Question[]>>(new Map());
  const versions = ids.map((id) => `${id} ${hub.row(id)?.seq ?? 0}`);
  const asked = useRef<ReadonlySet<string>>(new Set());
  useEffect(() => {
    const news = ids.filter((_, place) => !asked.current.has(versions[place]!));
    asked.current = new Set(versions);
    for (const id of news) {
      hub.api
        .get<{ pendingQuestions?: Question[] }>(`${path("sessions", id)}?items=false`)
        .then(({ pendingQuestions = [] }) => setFound((now) => new Map(now).set(id, pendingQuestions)))
        .catch(() => {}); // the status still says that the session asks
    }
  }, [versions.join("\n")]);
  return found;
}

/** Before the hub has sent the list, it is not known whether anything is pending. */
function None() {
  const offline = useOffline();
  if (useHub().me.value) {
    return (
      <p class="centre-none muted">
        <Icon name="check" /> No pending approvals
      </p>
    );
  }
  if (offline) return <p class="centre-none muted">Offline. Pending approvals appear when the hub is reached.</p>;
  return <p class="new-bone" role="status" aria-label="Loading pending approvals" />;
}

/** Everything that one session waits for: each approval, and each question that is not part of one. */
function SessionGroup({ id, approvals, questions, keyed }: Group & { keyed: boolean }) {
  const row = useHub().row(id);
  const own = ownQuestions(approvals, questions ?? []);
  return (
    <section class="centre-group" aria-label={visible(sessionName(row))}>
      <SessionLink id={id} />
      {approvals.map((approval) => (
        <ApprovalCard
          key={approval.id}
          approval={approval}
          questions={linkedQuestions(approval, questions)}
          keys={keyed}
        />
      ))}
      {own.map(({ questionId, question }) => (
        <QuestionLink key={questionId} id={id} text={question} />
      ))}
      {!approvals.length && !own.length && <QuestionLink id={id} text="" />}
    </section>
  );
}

/** A question is answered in its session. */
function QuestionLink({ id, text }: { id: string; text: string }) {
  return (
    <div class="ask card centre-question">
      <Icon name="question" />
      <p>{text ? <Shortened text={text} limit={LONGEST_QUESTION} /> : "The agent has a question"}</p>
      <a class="button" href={hrefOf({ view: "session", id })}>
        Answer
      </a>
    </div>
  );
}

function SessionLink({ id }: { id: string }) {
  const row = useHub().row(id);
  return (
    <h2 class="centre-session">
      <a href={hrefOf({ view: "session", id })}>
        <bdi>
          <Seen text={sessionName(row)} />
        </bdi>
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
    <section class="centre-group" aria-label="Recent decisions">
      <h2 class="centre-session">Recent decisions</h2>
      {failed && <p class="small muted">Could not load recent decisions: {failed}</p>}
      {!failed && read && !rows.length && <p class="small muted">No decisions yet</p>}
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
  const summary = <Shortened text={summarizeRequest(row.request, session?.cwd)} limit={LONGEST_SUMMARY} />;
  return (
    <li class={`centre-row ${allowed ? "allowed" : "denied"}`}>
      <Icon name={allowed ? "check" : "cross"} size={14} />
      <span class="centre-what">
        <span class="centre-summary">{row.request.preview?.type === "command" ? <code>{summary}</code> : summary}</span>
        <span class="small muted centre-summary">
          {text}
          {reason && (
            <>
              : <Shortened text={reason} limit={LONGEST_SUMMARY} />
            </>
          )}
        </span>
      </span>
      <RiskChip level={row.request.riskLevel} />
      <span class="small muted centre-when">
        <a href={hrefOf({ view: "session", id: row.sessionId })}>
          <Seen text={sessionName(session)} />
        </a>
        <time dateTime={row.resolved ?? ""} title={moment(row.resolved ?? "")}>
          {ago(row.resolved ?? "")}
        </time>
      </span>
    </li>
  );
}

function groupBySession(rows: readonly ApprovalRow[]): Map<string, ApprovalRow[]> {
  const groups = new Map<string, ApprovalRow[]>();
  for (const row of rows) groups.set(row.sessionId, [...(groups.get(row.sessionId) ?? []), row]);
  return groups;
}
