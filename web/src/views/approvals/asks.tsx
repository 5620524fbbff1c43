/**
 * The pending approvals and questions of the open session, above the composer: one card at a time, and for a few
 * seconds how the last one was decided.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { plainSummary, summarizeRequest } from "../../app/approvals";
import { useHub, useOpen } from "../../app/context";
import { deciding, ruleRefusalOf, storedRuleOf } from "../../app/deciding";
import type { ApprovalRow } from "../../app/rows";
import { isObject, textOf } from "../../model/json";
import type { Session } from "../../model/session";
import { visible } from "../../text/highlight/odd";
import { shortenText } from "../../text/shorten";
import { Icon } from "../../ui/icon";
import { ApprovalCard } from "./card";
import { useWayBack } from "./focus";
import { Sentence, Shortened } from "./hidden";
import { LazyQuestion } from "./lazy";
import { pendingCards, type PendingCard } from "./pending";
import { verdict } from "./words";

/** Milliseconds that a decision stays: another device's is news, one's own is not. */
const THEIRS = 6000;
const OWN = 1500;
/** Characters that are read out, or shown of a decision. */
const LONGEST = 160;

export function Asks() {
  const hub = useHub();
  const open = useOpen();
  void open.head.value;
  const session = open.session.value;
  const approvals = hub.approvals.value.filter(({ sessionId }) => sessionId === open.id);
  const cards = pendingCards(approvals, session?.pendingQuestions ?? null);
  const [chosen, setChosen] = useState<string | null>(null);
  const place = Math.max(
    0,
    cards.findIndex(({ id }) => id === chosen),
  );
  const card = cards[place];
  const go = (by: number) => setChosen(cards[(place + by + cards.length) % cards.length]?.id ?? null);
  const pager = cards.length > 1 && <Pager place={place} count={cards.length} go={go} />;
  const left = useWayBack(card !== undefined);
  return (
    <div class="asks" onFocusIn={left}>
      <Verdicts waiting={approvals} quiet={card !== undefined} />
      {card && "approval" in card && (
        <ApprovalCard key={card.id} approval={card.approval} questions={card.questions} keys aside={pager} />
      )}
      {card && "question" in card && <LazyQuestion key={card.id} question={card.question} aside={pager} />}
      <p class="aside" role="status">
        {card ? `Waiting for you: ${announce(card, hub.row(open.id)?.cwd)}` : ""}
        {cards.length > 1 && `, and ${cards.length - 1} more`}
      </p>
    </div>
  );
}

const announce = (card: PendingCard, cwd: string | undefined): string =>
  "approval" in card
    ? plainSummary(card.approval.request, cwd, LONGEST)
    : visible(shortenText(card.question.question, LONGEST));

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

/** The last two approvals of this session that were decided. While a card needs the room they are only read out. */
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
  const rule = own && made.decision.remember !== undefined ? describeRule(made.row, row, open.session.value) : "";
  useEffect(() => {
    const timer = setTimeout(done, own && !rule ? OWN : THEIRS);
    return () => clearTimeout(timer);
  }, [own, rule]);
  const { allowed, text, reason } = verdict(row, own && row.decidedBy === hub.me.value?.name);
  const about = reason || summarizeRequest(row.request, hub.row(row.sessionId)?.cwd);
  return (
    <p class={`ask-decided small ${allowed ? "allowed" : "denied"}`} role="status">
      <Icon name={allowed ? "check" : "cross"} size={14} />
      <strong>{text}</strong>
      <span class="muted ask-about">
        {rule ? <Sentence text={rule} limit={LONGEST} /> : <Shortened text={about} limit={LONGEST} />}
      </span>
    </p>
  );
}

/** How the hub begins to say why there is no rule. */
const NO_RULE = "No rule can cover this request";

/** Whether the rule that a decision requested was stored. */
function describeRule(answer: ApprovalRow, row: ApprovalRow, session: Session | null): string {
  const refusal = ruleRefusalOf(answer) || ruleRefusalOf(row) || refusalInLog(session, row.id);
  if (refusal)
    return refusal.startsWith(NO_RULE)
      ? `No rule was stored${refusal.slice(NO_RULE.length)}`
      : `No rule was stored: ${refusal}`;
  const stored = storedRuleOf(answer) || storedRuleOf(row);
  return stored && `Rule stored: ${stored}`;
}

/** Older hubs only log that no rule was stored. */
function refusalInLog(session: Session | null, id: string): string {
  for (const item of session?.fields.items ?? []) {
    if (item.type !== "custom" || item.eventName !== "rule_not_kept" || !isObject(item.data)) continue;
    if (item.data["requestId"] === id) return textOf(item.data["reason"]) || "no rule can answer this safely";
  }
  return "";
}
