/** The questions of a tool as the form of its approval: the answers are the permission to run it. */
import { otherArguments } from "../../app/approvals";
import { type Decision, denyOnce, isCritical } from "../../app/deciding";
import type { ApprovalRow } from "../../app/rows";
import type { Question } from "../../model/wire.gen";
import { answerFrom, type Draft, emptyDraft, QuestionField } from "./field";
import { Arguments } from "./preview";
import { useTyped } from "./typed";

interface Props {
  approval: ApprovalRow;
  /** All questions of the request; null while they are not known. */
  questions: readonly Question[] | null;
  busy: boolean;
  choose(decision: Decision): void;
}

export function AnswerForm({ approval, questions, busy, choose }: Props) {
  const [drafts, setDrafts] = useTyped<Readonly<Record<string, Draft>>>(approval.id, "answers", {});
  const critical = isCritical(approval);
  const draftOf = (question: Question, known = drafts): Draft =>
    (Object.hasOwn(known, question.questionId) && known[question.questionId]) || emptyDraft(question);
  const answers = (questions ?? []).map((question) => [question.questionId, answerFrom(question, draftOf(question))]);
  const isComplete = questions !== null && answers.every(([, answer]) => answer !== null);
  const send = () => {
    if (isComplete) choose({ decision: "allow", answers: Object.fromEntries(answers) });
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (!critical) send();
  };
  const decline = (
    <button
      key="decline"
      type="button"
      class={`button${critical ? " primary" : ""}`}
      disabled={busy}
      onClick={() => choose(denyOnce(approval))}
    >
      Decline
    </button>
  );
  return (
    <form class="ask-form" onSubmit={submit}>
      {questions === null && (
        <p class="small muted" role="status">
          The questions of this request are not available yet.
        </p>
      )}
      {questions?.map((question) => (
        <QuestionField
          key={question.questionId}
          id={`${approval.id}-${question.questionId}`}
          titled
          question={question}
          draft={draftOf(question)}
          put={(change) =>
            setDrafts((before) => ({ ...before, [question.questionId]: change(draftOf(question, before)) }))
          }
          submit={submit}
        />
      ))}
      <Arguments input={otherArguments(approval.request)} title="Other arguments" />
      <div class="ask-choices">
        {critical && decline}
        <button
          type={critical ? "button" : "submit"}
          class={`button${critical ? "" : " primary"}`}
          disabled={busy || !isComplete}
          onClick={critical ? send : undefined}
        >
          {busy ? "Sending…" : "Send answers"}
        </button>
        {!critical && decline}
      </div>
    </form>
  );
}
