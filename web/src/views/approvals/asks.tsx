/**
 * What the open session waits for, above the composer: one card at a time, and for a few seconds who decided the last.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { useHub, useOpen } from "../../app/context";
import { deciding } from "../../app/deciding";
import type { ApprovalRow } from "../../app/rows";
import { isObject } from "../../model/json";
import type { Session } from "../../model/session";
import type { Question } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { ApprovalCard } from "./card";
import { useWayBack } from "./focus";
import { LazyQuestion } from "./lazy";
import { asked, verdict } from "./words";

/** Milliseconds that a decision stays: another's is news, one's own is not. */
const THEIRS = 6000;
const OWN = 1500;
/** Letters that are read out. */
const LONGEST = 160;

type Ask = { id: string; approval: ApprovalRow } | { id: string; question: Question };

/** In the order in which they were asked. A tool that asks its user is answered by the question, so that comes alone. */
function asksOf(approvals: readonly ApprovalRow[], questions: readonly Question[]): Ask[] {
  const calls = new Set(questions.map(({ toolCallId }) => toolCallId).filter(Boolean));
  const plain = approvals.filter(({ request }) => !calls.has(request.toolCallId));
  const all = [
    ...plain.map((approval) => ({ at: approval.created, ask: { id: approval.id, approval } })),
    ...questions.map((question) => ({ at: question.timestamp, ask: { id: question.questionId, question } })),
  ];
  return all.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0)).map(({ ask }) => ask);
}

export function Asks() {
  const hub = useHub();
  const open = useOpen();
  void open.head.value;
  const session = open.session.value;
  const mine = hub.approvals.value.filter(({ sessionId }) => sessionId === open.id);
  const asks = asksOf(mine, session?.pendingQuestions ?? []);
  const [chosen, setChosen] = useState<string | null>(null);
  const place = Math.max(
    0,
    asks.findIndex(({ id }) => id === chosen),
  );
  const ask = asks[place];
  const go = (by: number) => setChosen(asks[(place + by + asks.length) % asks.length]?.id ?? null);
  const pager = asks.length > 1 && <Pager place={place} count={asks.length} go={go} />;
  const left = useWayBack(ask !== undefined);
  return (
    <div class="asks" onFocusIn={left}>
      <Verdicts waiting={mine} quiet={ask !== undefined} />
      {ask && "approval" in ask && <ApprovalCard key={ask.id} approval={ask.approval} keys aside={pager} />}
      {ask && "question" in ask && <LazyQuestion key={ask.id} question={ask.question} aside={pager} />}
      <p class="aside" role="status">
        {ask ? `Waiting for you: ${wordsOf(ask, hub.row(open.id)?.cwd)}` : ""}
        {asks.length > 1 && `, and ${asks.length - 1} more`}
      </p>
    </div>
  );
}

const wordsOf = (ask: Ask, cwd: string | undefined): string =>
  ("approval" in ask ? asked(ask.approval, cwd) : ask.question.question).slice(0, LONGEST);

function Pager({ place, count, go }: { place: number; count: number; go(by: number): void }) {
  return (
    <span class="ask-pager small">
      <button type="button" class="button quiet icon" aria-label="Previous" onClick={() => go(-1)}>
        <Icon name="back" size={14} />
      </button>
      {place + 1} of {count}
      <button type="button" class="button quiet icon" aria-label="Next" onClick={() => go(1)}>
        <Icon name="right" size={14} />
      </button>
    </span>
  );
}

/** Those that were here and are decided now, the last two. They are only heard while the next card needs the room. */
function Verdicts({ waiting, quiet }: { waiting: readonly ApprovalRow[]; quiet: boolean }) {
  const hub = useHub();
  const seen = useRef(new Set<string>());
  const [, draw] = useState(0);
  for (const { id } of waiting) seen.current.add(id);
  const ids = new Set(waiting.map(({ id }) => id));
  const gone = [...seen.current].filter((id) => !ids.has(id));
  for (const id of gone.splice(0, gone.length - 2)) seen.current.delete(id);
  const rows = gone.flatMap((id) => {
    const own = deciding.value.get(id);
    const row = hub.decided.value.get(id) ?? (own?.state === "done" ? own.row : undefined);
    return row ? [row] : [];
  });
  const leave = (id: string) => {
    seen.current.delete(id);
    draw((count) => count + 1);
  };
  return (
    <div class={quiet ? "aside" : "ask-verdicts"}>
      {rows.map((row) => (
        <Decided key={row.id} row={row} done={() => leave(row.id)} />
      ))}
    </div>
  );
}

function Decided({ row, done }: { row: ApprovalRow; done(): void }) {
  const hub = useHub();
  const open = useOpen();
  void open.items.value;
  const made = deciding.value.get(row.id);
  const own = made?.state === "done";
  const ruleless = own && made.decision.remember !== undefined && isRuleless(open.session.value, row.id);
  useEffect(() => {
    const timer = setTimeout(done, own && !ruleless ? OWN : THEIRS);
    return () => clearTimeout(timer);
  }, [own, ruleless]);
  const { allowed, text, reason } = verdict(row, own && row.decidedBy === hub.me.value?.name);
  return (
    <p class={`ask-decided small ${allowed ? "allowed" : "denied"}`} role="status">
      <Icon name={allowed ? "check" : "cross"} size={14} />
      <strong>{text}</strong>
      <span class="muted cut">
        {ruleless ? "This once: no rule can answer it safely" : reason || asked(row, hub.row(row.sessionId)?.cwd)}
      </span>
    </p>
  );
}

/** Whether the hub made no rule of it, although it was asked to. */
const isRuleless = (session: Session | null, id: string): boolean =>
  session?.fields.items.some(
    (item) =>
      item.type === "custom" &&
      item.eventName === "rule_not_kept" &&
      isObject(item.data) &&
      item.data["requestId"] === id,
  ) ?? false;
