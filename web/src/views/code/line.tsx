/**
 * The text of one line: colours, marks, and invisible characters made visible. Text nodes only.
 *
 * A very long line shows its beginning and its end, and the rest on request.
 */
import { useState } from "preact/hooks";
import type { Mark } from "../../diff/rows";
import { pieces } from "../../text/highlight/odd";
import { type Line, parts } from "../../text/highlight/spans";
import { shortenMiddle } from "../../text/shorten";
import { count } from "../../ui/time";

/** Characters of a line that are shown at first. */
export const LINE_LIMIT = 1000;

interface Props {
  text: string;
  spans?: Line | undefined;
  marks?: readonly Mark[] | undefined;
}

export function LineText({ text, spans, marks }: Props) {
  return text.length > LINE_LIMIT ? <LongLine text={text} spans={spans} marks={marks} /> : inked(text, spans, marks);
}

function LongLine({ text, spans, marks }: Props) {
  const [whole, setWhole] = useState(false);
  // colours of a line this long are of no use, and their elements would be many
  if (whole) return <>{odd(text)}</>;
  const { head, tail } = shortenMiddle(text, LINE_LIMIT);
  return (
    <>
      {inked(head, spans, marks)}
      <button type="button" class="code-more" onClick={() => setWhole(true)}>
        … show whole line ({count(text.length)} characters) …
      </button>
      {odd(tail)}
    </>
  );
}

function inked(text: string, spans?: Line, marks?: readonly Mark[]) {
  if (!spans?.length && !marks?.length) return odd(text);
  return parts(text, spans, marks).map(({ text: part, scope, marked }) => {
    const name = `${scope && `tok-${scope}`}${marked ? " diff-word" : ""}`;
    return name ? <span class={name}>{odd(part)}</span> : odd(part);
  });
}

/** The text with a box around each odd character. A blank stays as wide as it is, so that columns stay aligned. */
export function odd(text: string) {
  return pieces(text).map((piece) =>
    typeof piece === "string" ? (
      piece
    ) : (
      <span class={`code-odd${piece.blank ? " code-blank" : ""}`} title={piece.shown}>
        {piece.blank ?? piece.shown}
      </span>
    ),
  );
}
