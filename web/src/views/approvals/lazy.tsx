/** Questions are rarer than approvals: what shows them is fetched when the first one is asked. */
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Question } from "../../model/wire.gen";

type Props = { question: Question; aside?: ComponentChildren };

let loaded: ComponentType<Props> | null = null;

export function LazyQuestion(props: Props) {
  const [, draw] = useState(0);
  const [failed, setFailed] = useState(false);
  const load = () => {
    setFailed(false);
    import("./question")
      .then(({ QuestionCard }) => {
        loaded = QuestionCard;
        draw(1);
      })
      .catch(() => setFailed(true));
  };
  useEffect(() => {
    if (!loaded) load();
  }, []);
  if (loaded) {
    const Loaded = loaded;
    return <Loaded {...props} />;
  }
  return (
    <section class="ask card" aria-label="Question" aria-busy={!failed}>
      <header class="ask-head">
        <h3 class="ask-title">{props.question.question}</h3>
        {props.aside}
      </header>
      {failed && (
        <footer class="ask-foot">
          <button type="button" class="button" onClick={load}>
            This part of the page could not be fetched. Try again
          </button>
        </footer>
      )}
    </section>
  );
}
