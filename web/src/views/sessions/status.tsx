/** What a session is doing, in a word. */
import type { Word } from "../../app/rows";

const CHIPS: Readonly<Record<Word, string>> = {
  working: "work",
  "waiting for you": "wait",
  failed: "bad",
  done: "ok",
  idle: "",
  paused: "",
  offline: "",
};

export function Status({ word, waiting = 0 }: { word: Word; waiting?: number }) {
  return (
    <span class={`chip session-word ${CHIPS[word]}`}>
      {word === "working" && <i class="session-pulse" />}
      {word}
      {waiting > 1 && word === "waiting for you" && <b aria-label={`${waiting} decisions`}>{waiting}</b>}
    </span>
  );
}
