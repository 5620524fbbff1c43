/** A question of the agent: options, free text, a form, or a page to open. It can always be declined. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type Answer, answerQuestion } from "../../app/commands";
import { useHub, useOpen } from "../../app/context";
import { words } from "../../app/hub";
import type { Question } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { clock } from "../../ui/time";
import { hostOf } from "../text/links";
import { useCountdown } from "./clocks";
import { answerFrom, type Draft, emptyDraft, QuestionField } from "./field";
import { Form } from "./form";
import { Seen } from "./hidden";
import { forget, useTyped } from "./typed";

interface Props {
  question: Question;
  aside?: ComponentChildren;
}

interface Answering {
  id: string;
  /** Unique, unlike the id of a question, which an agent may use again. */
  mark: string;
  busy: boolean;
  send(answer: Answer): void;
  decline(): void;
}

export function QuestionCard({ question, aside }: Props) {
  const hub = useHub();
  const open = useOpen();
  const [state, setState] = useState<"open" | "sending" | "sent">("open");
  const mark = `${open.id} ${question.questionId} ${question.timestamp}`;
  const [failed, setFailed] = useState("");
  const send = async (answer: Answer) => {
    setState("sending");
    setFailed("");
    try {
      await answerQuestion(hub, open.id, question.questionId, answer);
      setState("sent");
      forget(mark);
    } catch (error) {
      setState("open");
      setFailed(words(error));
    }
  };
  const left = useCountdown(question.expiresAt);
  const answering = {
    id: `q-${question.questionId}`,
    mark,
    busy: state !== "open",
    send: (answer: Answer) => void send(answer),
    decline: () => void send(null),
  };
  return (
    <section class="ask card" tabIndex={-1} aria-label="Question">
      <header class="ask-head">
        <Icon name="question" />
        <h2 class="ask-title">
          <Seen text={question.question || "The agent has a question"} />
        </h2>
        {aside}
      </header>
      <div class="ask-body">
        {hub.may("approve") ? (
          <Body question={question} answering={answering} />
        ) : (
          <p class="small muted">This device can only watch. Answer on a device that may approve.</p>
        )}
      </div>
      {(state === "sent" || failed || left !== null) && (
        <footer class="ask-foot">
          {state === "sent" && (
            <p class="small muted" role="status">
              Answer saved. The agent gets it together with the answers to its other questions.
            </p>
          )}
          {failed && (
            <p class="ask-failed small" role="alert">
              {failed}
            </p>
          )}
          {left !== null && <span class="ask-clock tiny">expires in {clock(left * 1000)}</span>}
        </footer>
      )}
    </section>
  );
}

function Body({ question, answering }: { question: Question; answering: Answering }) {
  if (question.url !== undefined) return <Page url={question.url} {...answering} />;
  if (question.form) return <Form {...answering} form={question.form} />;
  return <Fields question={question} {...answering} />;
}

/** Whether a browser opens it as a page; anything else is only shown as text. */
const isPage = (url: string): boolean => /^https?:\/\//i.test(url);

function Page({ url, busy, send, decline }: Answering & { url: string }) {
  return (
    <div class="ask-form">
      <p class="ask-url mono small">
        <Seen text={url} />
      </p>
      <div class="ask-choices">
        {isPage(url) && (
          <a class="button primary" href={url} target="_blank" rel="noopener noreferrer">
            <Icon name="link" size={14} /> Open {hostOf(url) || "the page"}
          </a>
        )}
        <button type="button" class="button" disabled={busy} onClick={() => send({})}>
          Done
        </button>
        <button type="button" class="button quiet" disabled={busy} onClick={decline}>
          Decline
        </button>
      </div>
    </div>
  );
}

function Fields({ id, mark, question, busy, send, decline }: Answering & { question: Question }) {
  const [draft, setDraft] = useTyped<Draft>(mark, "draft", emptyDraft(question));
  const answer = answerFrom(question, draft);
  const submit = (event: Event) => {
    event.preventDefault();
    if (answer !== null) send(answer);
  };
  return (
    <form class="ask-form" onSubmit={submit}>
      <QuestionField id={id} question={question} draft={draft} put={setDraft} submit={submit} />
      <div class="ask-choices">
        <button type="submit" class="button primary" disabled={busy || answer === null}>
          {busy ? "Sending…" : "Answer"}
        </button>
        <button type="button" class="button" disabled={busy} onClick={decline}>
          Decline
        </button>
      </div>
    </form>
  );
}
