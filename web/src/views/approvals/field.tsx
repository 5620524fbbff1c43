/** The field of one question: its options and a text of one's own, or only a text. */
import type { Question } from "../../model/wire.gen";
import { Seen } from "./hidden";

/** What was chosen and typed so far. */
export interface Draft {
  readonly chosen: readonly string[];
  readonly text: string;
}

export const hasOptions = ({ options }: Question): boolean => Boolean(options?.length);

/** The draft before anything was chosen or typed: the default that the agent names. */
export function emptyDraft(question: Question): Draft {
  const { defaultValue, options = [] } = question;
  if (defaultValue === undefined) return { chosen: [], text: "" };
  if (!hasOptions(question)) return { chosen: [], text: defaultValue };
  return { chosen: options.includes(defaultValue) ? [defaultValue] : [], text: "" };
}

/** The answer that a draft gives; null while it gives none. */
export function answerFrom(question: Question, { chosen, text }: Draft): string | string[] | null {
  const own = text.trim();
  if (!hasOptions(question)) return own || null;
  const all = [...(question.options ?? []).filter((option) => chosen.includes(option)), ...(own ? [own] : [])];
  if (question.multiSelect) return all.length ? all : null;
  return all.at(-1) ?? null;
}

interface Props {
  id: string;
  question: Question;
  draft: Draft;
  put(change: (before: Draft) => Draft): void;
  /** Whether the question itself is shown here, or only named for screen readers. */
  titled?: boolean;
  /** Ctrl+Enter in a text of several lines. */
  submit?(event: Event): void;
}

export function QuestionField(props: Props) {
  const { question, titled = false } = props;
  const title = <Seen text={question.question || "The agent has a question"} />;
  if (!hasOptions(question)) {
    return (
      <div class="ask-row">
        <label class={titled ? "" : "aside"} for={props.id}>
          {titled ? title : "Your answer"}
        </label>
        <FreeText {...props} />
      </div>
    );
  }
  return (
    <fieldset class="ask-row">
      <legend class={titled ? "" : "aside"}>
        {titled ? title : question.multiSelect ? "Choose any" : "Choose one"}
      </legend>
      <Options {...props} />
    </fieldset>
  );
}

function Options({ id, question, draft, put }: Props) {
  const many = question.multiSelect ?? false;
  const pick = (option: string, on: boolean) =>
    put(({ chosen, text }) => {
      if (!many) return { chosen: [option], text: "" };
      return { chosen: on ? [...chosen, option] : chosen.filter((one) => one !== option), text };
    });
  return (
    <>
      {(question.options ?? []).map((option, place) => (
        <label key={place} class="ask-option">
          <input
            type={many ? "checkbox" : "radio"}
            name={id}
            checked={draft.chosen.includes(option)}
            onChange={(event) => pick(option, event.currentTarget.checked)}
          />
          <span>
            <Seen text={option} />
          </span>
        </label>
      ))}
      <input
        class="field"
        type="text"
        placeholder={many ? "Something else as well…" : "Something else…"}
        aria-label="Something else"
        value={draft.text}
        onInput={({ currentTarget: { value } }) =>
          put(({ chosen }) => ({ chosen: !many && value ? [] : chosen, text: value }))
        }
      />
    </>
  );
}

function FreeText({ id, draft, put, submit }: Props) {
  return (
    <textarea
      id={id}
      class="field"
      rows={2}
      value={draft.text}
      onInput={({ currentTarget: { value } }) => put(({ chosen }) => ({ chosen, text: value }))}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) submit?.(event);
      }}
    />
  );
}
