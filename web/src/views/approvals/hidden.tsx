/**
 * Texts that are read before a decision: invisible characters are shown by name, and nothing cuts off their end. Words
 * that are written from right to left stand apart, so that they reorder nothing around them: not even a `>`.
 */
import { pieces } from "../../text/highlight/odd";
import { gapText, shortenMiddle, type Shortened as Parts } from "../../text/shorten";

export function Seen({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map((piece, place) =>
        typeof piece === "string" ? (
          <InOrder key={place} text={piece} />
        ) : (
          <mark key={place} class="ask-unseen" title="Invisible character">
            {piece.shown}
          </mark>
        ),
      )}
    </>
  );
}

/** The blocks of scripts that are written from right to left. */
const LEFTWARDS = /([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]+)/u;

function InOrder({ text }: { text: string }) {
  if (!LEFTWARDS.test(text)) return <>{text}</>;
  return <>{text.split(LEFTWARDS).map((part, place) => (place % 2 ? <bdi key={place}>{part}</bdi> : part))}</>;
}

/** The beginning and the end of a text, and between them how much is left out. */
export function WithGap({ head, tail, ...gap }: Parts) {
  if (!gap.characters) return <Seen text={head} />;
  return (
    <>
      <Seen text={head} />
      <span class="ask-gap">{gapText(gap)}</span>
      <Seen text={tail} />
    </>
  );
}

export function Shortened({ text, limit }: { text: string; limit: number }) {
  return <WithGap {...shortenMiddle(text, limit)} />;
}

/** Backticks around code, with as many of them as the code needs. */
const CODE = /(?<!`)(`+)(?!`)([^]*?[^`])\1(?!`)/g;

/** A sentence of the hub, with the code in it set apart. A long piece of it is shortened in the middle. */
export function Sentence({ text, limit = 600 }: { text: string; limit?: number }) {
  const parts: { text: string; isCode: boolean }[] = [];
  let from = 0;
  for (const { 0: whole, 2: code = "", index } of text.matchAll(CODE)) {
    parts.push({ text: text.slice(from, index), isCode: false }, { text: code, isCode: true });
    from = index + whole.length;
  }
  parts.push({ text: text.slice(from), isCode: false });
  return (
    <>
      {parts.map(({ text: part, isCode }, place) => {
        const shown = <Shortened key={place} text={part} limit={limit} />;
        return isCode ? <code key={place}>{shown}</code> : shown;
      })}
    </>
  );
}
