/**
 * Which steps of a run are shown, and which stand behind one line. Pure.
 *
 * Folded away are calls that ended well and changed nothing, when there are more than a few in a row, with what was
 * thought and allowed between them. Whatever runs, failed, was declined, changed a file or was not asked for is shown.
 */
import { pending } from "../../model/state";
import type { ToolCall } from "../../model/wire.gen";
import type { Step } from "../cards/family";
import { countsOf, type Kind, kindOf } from "../cards/kinds";

export type Part =
  { readonly kind: "step"; readonly step: Step } | { readonly kind: "group"; readonly steps: readonly Step[] };

/** Calls in a row that are not yet worth folding. */
const FEW = 3;

const LOUD: ReadonlySet<Kind> = new Set(["edit", "delete", "move", "agent", "question", "mode"]);

/** Nobody misses it when it is folded away. */
const isQuiet = (call: ToolCall): boolean =>
  call.status === "completed" && !countsOf(call) && !call.git?.length && !LOUD.has(kindOf(call));

export function partsOf(steps: readonly Step[], loud: (call: ToolCall) => boolean = () => false): Part[] {
  const parts: Part[] = [];
  let group: Step[] = [];
  const close = () => {
    parts.push(...closed(group));
    group = [];
  };
  for (const step of steps) {
    if (step.type === "tool_call" ? isQuiet(step) && !loud(step) : isSettled(step)) group.push(step);
    else {
      close();
      parts.push({ kind: "step", step });
    }
  }
  close();
  return parts;
}

const isSettled = (step: Exclude<Step, ToolCall>): boolean =>
  step.type === "thought" ? step.done : !pending(step) && step.approved === true;

/** Thoughts before the first call and after the last one are not part of the group. */
function closed(group: readonly Step[]): Part[] {
  const isCall = (step: Step) => step.type === "tool_call";
  if (group.filter(isCall).length <= FEW) return group.map((step) => ({ kind: "step", step }));
  const from = group.findIndex(isCall);
  const to = group.findLastIndex((step) => step.type !== "thought") + 1;
  const single = (step: Step): Part => ({ kind: "step", step });
  return [
    ...group.slice(0, from).map(single),
    { kind: "group", steps: group.slice(from, to) },
    ...group.slice(to).map(single),
  ];
}

const COUNTED: readonly (readonly [kinds: readonly Kind[], say: (count: number) => string])[] = [
  [["read"], (count) => `read ${count === 1 ? "a file" : `${count} files`}`],
  [["list"], (count) => `listed ${count === 1 ? "a directory" : `${count} directories`}`],
  [["search"], (count) => `searched ${count === 1 ? "once" : `${count} times`}`],
  [["bash", "git"], (count) => `ran ${count === 1 ? "a command" : `${count} commands`}`],
  [["web"], (count) => `looked up ${count === 1 ? "a page" : `${count} pages`}`],
  [["todo"], () => "updated the plan"],
  [["think"], () => "thought it over"],
  [["mcp", "other"], (count) => `used ${count === 1 ? "a tool" : `${count} tools`}`],
];

/** `5 steps: read 3 files, ran 2 commands`. */
export function summaryOf(steps: readonly Step[]): string {
  const kinds = steps.flatMap((step) => (step.type === "tool_call" ? [kindOf(step)] : []));
  const said = COUNTED.flatMap(([of, say]) => {
    const count = kinds.filter((kind) => of.includes(kind)).length;
    return count ? [say(count)] : [];
  });
  return `${kinds.length} steps: ${said.join(", ")}`;
}
