/**
 * One approval: what the agent wants to do, how risky that is, and the buttons to decide.
 *
 * It never takes the focus from a field in use (`focus.ts`), and ignores taps in its first moments: a finger on its way
 * to something else must not allow anything.
 */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { describeRequest, isQuestionRequest } from "../../app/approvals";
import { useHub } from "../../app/context";
import { type Choice, decide, deciding, type Decision, listChoices } from "../../app/deciding";
import type { ApprovalRow } from "../../app/rows";
import { useShortcuts } from "../../app/shortcuts";
import type { Question } from "../../model/wire.gen";
import { visible } from "../../text/highlight/odd";
import { shortenText } from "../../text/shorten";
import { Icon } from "../../ui/icon";
import { clock } from "../../ui/time";
import { useBelow } from "./below";
import { Choices } from "./choices";
import { useCountdown, useReady } from "./clocks";
import { useCardKeys } from "./focus";
import { Seen, Shortened } from "./hidden";
import { LazyAnswerForm } from "./lazy";
import { HubNotes, HubOrigin } from "./notes";
import { Preview } from "./preview";
import { isRisky, RiskChip, RiskReasons, RiskWarning } from "./risk";
import { agentDescription } from "./words";

/** Characters of a title and of a description; the preview has the rest. */
const LONGEST_TITLE = 200;
const LONGEST_DESCRIPTION = 400;

interface Props {
  approval: ApprovalRow;
  /** The questions that the tool asks its user; null while they are not known. */
  questions?: readonly Question[] | null;
  /** Whether `a` and `d` decide this one: only one card at a time can have them. */
  keys?: boolean;
  /** Next to the title: a pager, a link to the session. */
  aside?: ComponentChildren;
}

export function ApprovalCard({ approval, questions = null, keys = false, aside }: Props) {
  const hub = useHub();
  const may = hub.may("approve");
  const ready = useReady();
  const card = useRef<HTMLElement>(null);
  const asksQuestions = isQuestionRequest(approval.request);
  const live = useCardKeys(card, keys && may && !asksQuestions && !isRisky(approval.request.riskLevel));
  const now = deciding.value.get(approval.id);
  const sending = now?.state === "sending" ? now.decision : now?.state === "done" ? {} : null;

  const choose = (decision: Decision) => {
    if (ready) void decide(hub, approval, decision);
  };
  const { request } = approval;
  const { riskLevel, riskReasons = [], notes = [] } = request;
  const cwd = hub.row(approval.sessionId)?.cwd;
  const title = describeRequest(request, cwd);
  // the form of a question has buttons of its own
  const hasFoot = !asksQuestions || !may || approval.expires !== null || now?.state === "failed";
  const description = asksQuestions || request.origin === "hub" ? "" : agentDescription(approval);
  return (
    <section
      ref={card}
      tabIndex={-1}
      class={`ask card ${riskLevel}`}
      aria-label={`Approval: ${visible(shortenText(title, LONGEST_TITLE))}`}
    >
      {keys && may && (
        <Keys live={live === "live"} choices={asksQuestions ? [] : listChoices(approval).choices} choose={choose} />
      )}
      <header class="ask-head">
        <Icon name={asksQuestions ? "question" : "shield"} />
        <h2 class="ask-title">
          <Shortened text={title} limit={LONGEST_TITLE} />
        </h2>
        {request.origin === "hub" && <HubOrigin />}
        {(!asksQuestions || isRisky(riskLevel)) && <RiskChip level={riskLevel} />}
        {aside}
      </header>
      <HubNotes notes={notes} />
      {description && (
        <p class="ask-said small">
          Agent's description: <Shortened text={description} limit={LONGEST_DESCRIPTION} />
        </p>
      )}
      {isRisky(riskLevel) && <RiskWarning level={riskLevel} reasons={riskReasons} />}
      {asksQuestions ? (
        <QuestionBody may={may} questions={questions}>
          <fieldset class="ask-guard" disabled={!ready}>
            <LazyAnswerForm approval={approval} questions={questions} busy={sending !== null} choose={choose} />
          </fieldset>
        </QuestionBody>
      ) : (
        <Body>
          <Preview approval={approval} cwd={cwd} />
          {!isRisky(riskLevel) && <RiskReasons level={riskLevel} reasons={riskReasons} />}
        </Body>
      )}
      {hasFoot && (
        <footer class="ask-foot">
          {!may && <p class="small muted">This device can only watch. Decide on a device that may approve.</p>}
          {may && !asksQuestions && (
            <fieldset class="ask-guard" disabled={!ready}>
              <Choices approval={approval} sending={sending} choose={choose} keys={keys && live} />
            </fieldset>
          )}
          <Countdown until={approval.expires} />
          {now?.state === "failed" && (
            <p class="ask-failed small" role="alert">
              {now.text}
            </p>
          )}
        </footer>
      )}
    </section>
  );
}

interface QuestionBodyProps {
  may: boolean;
  questions: readonly Question[] | null;
  children: ComponentChildren;
}

/** The form; only the questions on a device that may not answer. */
function QuestionBody({ may, questions, children }: QuestionBodyProps) {
  if (may) return <div class="ask-body">{children}</div>;
  return (
    <div class="ask-body">
      {questions?.map(({ questionId, question }) => (
        <p key={questionId}>
          <Seen text={question} />
        </p>
      ))}
    </div>
  );
}

/** The preview in a box that scrolls, and below it how much is out of sight. */
function Body({ children }: { children: ComponentChildren }) {
  const { box, content, below, go } = useBelow();
  return (
    <>
      <div ref={box} class="ask-body" role="group" aria-label="Preview" tabIndex={0}>
        <div ref={content} class="ask-what">
          {children}
        </div>
      </div>
      {below > 0 && (
        <button type="button" class="ask-below tiny" onClick={go}>
          <Icon name="down" size={12} />
          {below === 1 ? "1 more line" : `${below.toLocaleString()} more lines`}
        </button>
      )}
    </>
  );
}

function Countdown({ until }: { until: string | null }) {
  const left = useCountdown(until);
  if (left === null) return null;
  return (
    <span class={`ask-clock tiny ${left < 30 ? "soon" : ""}`} role="timer">
      <Icon name="clock" size={12} />
      {left > 0 ? `denied in ${clock(left * 1000)}` : "time is up"}
    </span>
  );
}

interface KeysProps {
  live: boolean;
  choices: readonly Choice[];
  choose(decision: Decision): void;
}

/** The keys `a` and `d`. A key that is held down was meant for the card before this one. */
function Keys({ live, choices, choose }: KeysProps) {
  const shortcut = (keys: "a" | "d", label: string) => {
    const choice = choices.find(({ key }) => key === keys);
    return {
      keys,
      label,
      group: "Approvals" as const,
      when: () => live && choice !== undefined,
      run: (event: KeyboardEvent) => {
        if (choice && !event.repeat) choose(choice.decision);
      },
    };
  };
  useShortcuts([shortcut("a", "Allow once"), shortcut("d", "Deny")]);
  return null;
}
