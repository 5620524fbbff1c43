/** Something that the agent asks: options, free text, a form, or a page to look at. It can always be declined. */
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
import { Form } from "./form";
import { Seen } from "./hidden";
import { forget, useTyped } from "./typed";

interface Props {
  question: Question;
  aside?: ComponentChildren;
}

interface Answering {
  id: string;
  /** Ids of questions may come again; this does not. */
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
          <p class="small muted">This device may only watch. Answer on one that may approve.</p>
        )}
      </div>
      {(state === "sent" || failed || left !== null) && (
        <footer class="ask-foot">
          {state === "sent" && (
            <p class="small muted" role="status">
              The hub has your answer; the agent gets it with the answers to its other questions.
            </p>
          )}
          {failed && (
            <p class="ask-failed small" role="alert">
              {failed}
            </p>
          )}
          {left !== null && <span class="ask-clock tiny">withdrawn in {clock(left * 1000)}</span>}
        </footer>
      )}
    </section>
  );
}

function Body({ question, answering }: { question: Question; answering: Answering }) {
  if (question.url !== undefined) return <Page url={question.url} {...answering} />;
  if (question.form) return <Form {...answering} form={question.form} />;
  if (question.options?.length) return <Options question={question} {...answering} />;
  return <Free question={question} {...answering} />;
}

/** Only what a browser opens as a page; anything else is shown as text. */
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

function Options({ id, mark, question, busy, send, decline }: Answering & { question: Question }) {
  const options = question.options ?? [];
  const many = question.multiSelect ?? false;
  const [chosen, setChosen] = useTyped<readonly string[]>(
    mark,
    "chosen",
    question.defaultValue !== undefined && options.includes(question.defaultValue) ? [question.defaultValue] : [],
  );
  const [other, setOther] = useTyped(mark, "other", "");
  const own = other.trim();
  const all = [...options.filter((option) => chosen.includes(option)), ...(own ? [own] : [])];
  const pick = (option: string, on: boolean) => {
    if (many) setChosen((before) => (on ? [...before, option] : before.filter((one) => one !== option)));
    else {
      setChosen(() => [option]);
      setOther(() => "");
    }
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (all.length) send(many ? all : (all.at(-1) ?? ""));
  };
  return (
    <form class="ask-form" onSubmit={submit}>
      <fieldset class="ask-row">
        <legend class="aside">{many ? "Choose any" : "Choose one"}</legend>
        {options.map((option) => (
          <label key={option} class="ask-option">
            <input
              type={many ? "checkbox" : "radio"}
              name={id}
              checked={chosen.includes(option)}
              onChange={(event) => pick(option, event.currentTarget.checked)}
            />
            {option}
          </label>
        ))}
        <input
          class="field"
          type="text"
          placeholder={many ? "Something else as well…" : "Something else…"}
          aria-label="Something else"
          value={other}
          onInput={({ currentTarget: { value } }) => {
            setOther(() => value);
            if (!many && value) setChosen(() => []);
          }}
        />
      </fieldset>
      <Send busy={busy} ready={all.length > 0} decline={decline} />
    </form>
  );
}

function Free({ id, mark, question, busy, send, decline }: Answering & { question: Question }) {
  const [text, setText] = useTyped(mark, "text", question.defaultValue ?? "");
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.trim()) send(text.trim());
  };
  return (
    <form class="ask-form" onSubmit={submit}>
      <textarea
        id={id}
        class="field"
        rows={2}
        aria-label="Your answer"
        value={text}
        onInput={({ currentTarget: { value } }) => setText(() => value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) submit(event);
        }}
      />
      <Send busy={busy} ready={Boolean(text.trim())} decline={decline} />
    </form>
  );
}

function Send({ busy, ready, decline }: { busy: boolean; ready: boolean; decline(): void }) {
  return (
    <div class="ask-choices">
      <button type="submit" class="button primary" disabled={busy || !ready}>
        {busy ? "Sending…" : "Answer"}
      </button>
      <button type="button" class="button" disabled={busy} onClick={decline}>
        Decline
      </button>
    </div>
  );
}
