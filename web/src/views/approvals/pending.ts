/** Which cards are shown for the pending approvals and questions of a session. Pure. */
import type { ApprovalRow } from "../../app/rows";
import type { Question } from "../../model/wire.gen";

export type PendingCard =
  | {
      id: string;
      approval: ApprovalRow;
      /** The questions of its tool; null while one is not known. */ questions: Question[] | null;
    }
  | { id: string; question: Question };

/** Whether a question can be answered with its approval: forms and pages need a card of their own. */
const isPlain = ({ form, url }: Question): boolean => form === undefined && url === undefined;

/** The questions that are shown as part of a pending approval, because its tool asks them. */
export function linkedQuestions(approval: ApprovalRow, questions: readonly Question[] | null): Question[] | null {
  const ids = approval.request.questionIds ?? [];
  const found = ids.map((id) => questions?.find((question) => question.questionId === id && isPlain(question)));
  return found.every((question) => question !== undefined) ? found : null;
}

/** The questions that are shown on their own. A shared tool call alone links a question to nothing. */
export function ownQuestions(approvals: readonly ApprovalRow[], questions: readonly Question[]): Question[] {
  const linked = new Set(approvals.flatMap(({ request }) => request.questionIds ?? []));
  return questions.filter((question) => !linked.has(question.questionId) || !isPlain(question));
}

/** One card for each approval and for each question of its own, in the order in which they were asked. */
export function pendingCards(approvals: readonly ApprovalRow[], questions: readonly Question[] | null): PendingCard[] {
  const timed = [
    ...approvals.map((approval) => ({
      at: approval.created,
      card: { id: approval.id, approval, questions: linkedQuestions(approval, questions) },
    })),
    ...ownQuestions(approvals, questions ?? []).map((question) => ({
      at: question.timestamp,
      card: { id: question.questionId, question },
    })),
  ];
  return timed.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0)).map(({ card }) => card);
}
