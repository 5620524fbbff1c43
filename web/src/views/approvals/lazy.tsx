/** Questions are rarer than approvals: what shows them is fetched when the first one is asked. */
import { lazily, Missing } from "../../ui/lazy";

export const LazyQuestion = lazily(
  () => import("./question").then((part) => part.QuestionCard),
  ({ question, aside }, again) => (
    <section class="ask card" tabIndex={-1} aria-label="Question" aria-busy={!again}>
      <header class="ask-head">
        <h2 class="ask-title">{question.question}</h2>
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
