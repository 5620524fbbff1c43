/** Approvals and questions in the transcript: one quiet line each. The cards are above the composer. */
import { isQuestionRequest } from "../../app/approvals";
import { labelOption } from "../../app/deciding";
import { isObject } from "../../model/json";
import { pending } from "../../model/state";
import type { Approval, Json, Question } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { visible } from "../../text/highlight/odd";
import { describeVerdict } from "../cards/verdict";
import { useIsPast, useSource, useVersion } from "../text/source";

export function ApprovalLine({ approval }: { approval: Approval }) {
  useVersion(approval);
  const source = useSource();
  // the questions that it consists of have lines of their own
  if (pending(approval)) return isQuestionRequest(approval) ? null : <Pending what="decision" />;
  // the line of the call says who allowed it
  if (approval.approved && source.session.peek()?.lookup.calls.has(approval.toolCallId)) return null;
  const option = approval.options?.find((one) => one.optionId === approval.optionId);
  // that it was allowed or denied once is said already
  const label = option?.kind.endsWith("_always") && approval.resolvedBy === "user" && labelOption(option);
  const how = visible([describeVerdict(approval), label, approval.reason].filter(Boolean).join(" · "));
  return (
    <p class={`decided${approval.approved ? "" : " decided-no"}`}>
      <Icon name="shield" size={13} />
      <span class="cut" title={`${visible(approval.description)}\n${how}`}>
        {how}
      </span>
    </p>
  );
}

/** Leads to the card above the composer. */
function Pending({ what }: { what: "decision" | "answer" }) {
  if (useIsPast()) {
    return (
      <p class="decided">
        <Icon name="clock" size={13} />
        {what === "decision" ? "Waiting for a decision" : "Waiting for an answer"}
      </p>
    );
  }
  const show = () => {
    const card = document.querySelector<HTMLElement>(".ask");
    // never a button: Enter must not decide an approval that was not read
    const field = card?.querySelector<HTMLElement>("input, select, textarea");
    (field ?? card)?.focus({ preventScroll: true });
  };
  return (
    <button type="button" class="decided decided-wait" onClick={show}>
      <Icon name="clock" size={13} />
      Waiting for your {what}
    </button>
  );
}

export function QuestionLine({ question }: { question: Question }) {
  useVersion(question);
  if (pending(question)) return <Pending what="answer" />;
  const answer = question.outcome === "answered" ? answerOf(question.answer) : "";
  return (
    <p class="decided">
      <Icon name="question" size={13} />
      <span>
        {visible(question.question) || "A question"}{" "}
        <span class="decided-answer">
          {visible(answer) ||
            (question.outcome === "answered" ? "Answered" : (OUTCOMES[question.outcome ?? ""] ?? "Not answered"))}
        </span>
      </span>
    </p>
  );
}

const OUTCOMES: Readonly<Record<string, string>> = {
  declined: "Declined to answer",
  cancelled: "Cancelled with the turn",
  timeout: "No answer in time",
};

function answerOf(answer: Json | undefined): string {
  if (typeof answer === "string") return answer;
  if (Array.isArray(answer)) return answer.map(answerOf).join(", ");
  if (isObject(answer))
    return Object.entries(answer)
      .map(([name, value]) => `${name}: ${answerOf(value)}`)
      .join(" · ");
  return answer === undefined || answer === null ? "" : String(answer);
}
