/** A file that was read, with the numbers of its lines. */
import { languageOf } from "../../diff/language";
import type { ToolCall } from "../../model/wire.gen";
import { Code } from "../code/code";
import { firstLineOf, pathsOf } from "./kinds";
import { Output, unfenced } from "./output";
import { useVersion } from "../text/source";

/** Numbers that the tool put before each line itself. */
const NUMBERED = /^ *(\d+)(?:\t|→|\| ?)/;

export function Reading({ call }: { call: ToolCall }) {
  useVersion(call);
  if (call.status !== "completed" || !call.output) return <Output text={call.output ?? ""} />;
  const path = pathsOf(call, "")[0] ?? "";
  const { text, from } = lines(unfenced(call.output), firstLineOf(call));
  return <Code text={text} language={languageOf(path)} startLine={from} lineNumbers limit={40} />;
}

/** The text without the tool's own numbers, and the number of its first line. */
export function lines(text: string, from: number): { text: string; from: number } {
  const all = text.replace(/\n$/, "").split("\n");
  const first = Number(NUMBERED.exec(all[0]!)?.[1] ?? NaN);
  const numbered = all.every((line, at) => Number(NUMBERED.exec(line)?.[1]) === first + at);
  if (!numbered) return { text: all.join("\n"), from };
  return { text: all.map((line) => line.replace(NUMBERED, "")).join("\n"), from: first };
}
