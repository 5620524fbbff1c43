/** Questions are rarer than approvals: their views are loaded with the first one. */
import { lazily, Missing } from "../../ui/lazy";
import { Seen } from "./hidden";

export const LazyQuestion = lazily(
  () => import("./question").then((part) => part.QuestionCard),
  ({ question, aside }, again) => (
    <section class="ask card" tabIndex={-1} aria-label="Question" aria-busy={!again}>
      <header class="ask-head">
        <h2 class="ask-title">
          <Seen text={question.question} />
        </h2>
        {aside}
      </header>
      {again && (
        <footer class="ask-foot">
          <Missing again={again} />
        </footer>
      )}
    </section>
  ),
);

export const LazyAnswerForm = lazily(() => import("./answers").then((part) => part.AnswerForm));
