// @vitest-environment jsdom
import { describe, expect, test } from "vitest";
import type { SessionItem, ToolCall } from "../../src/model/wire.gen";
import { wishesOf } from "../../src/views/cards/changed";
import { table } from "../../src/views/cards/csv";
import type { Step } from "../../src/views/cards/family";
import { headOf, kindOf } from "../../src/views/cards/kinds";
import { unfenced } from "../../src/views/cards/output";
import { lines } from "../../src/views/cards/reading";
import { partsOf, summaryOf } from "../../src/views/transcript/grouping";

let made = 0;
function call(name: string, fields: Partial<ToolCall> = {}): ToolCall {
  made += 1;
  const head = { type: "tool_call", toolCallId: `c${made}`, seq: made, timestamp: "" } as const;
  return { ...head, name, category: "other", status: "completed", ...fields };
}

const thought = (done = true): SessionItem & { type: "thought" } => {
  made += 1;
  return { type: "thought", messageId: `m${made}`, text: "Hm", done, seq: made, timestamp: "" };
};

function approval(approved: boolean | undefined): SessionItem & { type: "approval" } {
  made += 1;
  const resolved = approved === undefined ? {} : { approved, resolvedBy: "user" };
  const head = { type: "approval", requestId: `r${made}`, toolCallId: "", toolName: "", toolInput: {} } as const;
  return { ...head, description: "", riskLevel: "low", seq: made, timestamp: "", ...resolved };
}

const read = () => call("Read");
const ran = () => call("Bash");
const edited = () => call("Edit", { files: [{ path: "a", changeType: "modified", linesAdded: 1, linesRemoved: 0 }] });

/** A letter for each step that is shown, a number for steps that are folded into one. */
const picture = (steps: readonly Step[]): string =>
  partsOf(steps)
    .map((part) => (part.kind === "group" ? String(part.steps.length) : part.step.type[0]))
    .join("");

describe("grouping", () => {
  test.each<[string, Step[], string]>([
    ["three are few", [read(), read(), read()], "ttt"],
    ["four are one line", [read(), read(), ran(), ran()], "4"],
    ["what runs is shown", [read(), read(), read(), read(), call("Bash", { status: "executing" })], "4t"],
    ["what failed is shown", [read(), read(), call("Bash", { status: "failed" }), read(), read()], "ttttt"],
    ["a changed file is shown", [read(), read(), read(), read(), edited(), read()], "4tt"],
    ["an edit is shown even if nothing is known of it", [read(), read(), call("Write"), read(), read()], "ttttt"],
    [
      "what was allowed and thought between goes along",
      [read(), approval(true), thought(), read(), read(), read()],
      "6",
    ],
    ["thoughts around a group stay", [thought(), read(), read(), read(), read(), thought()], "t4t"],
    ["what was denied is shown", [read(), read(), read(), read(), approval(false)], "4a"],
    ["what waits is shown", [read(), read(), read(), read(), approval(undefined)], "4a"],
    ["a thought that goes on is shown", [read(), read(), read(), read(), thought(false)], "4t"],
    ["a sub-agent is shown", [read(), read(), read(), read(), call("Task")], "4t"],
    ["nothing is nothing", [], ""],
  ])("%s", (_, steps, expected) => {
    expect(picture(steps)).toBe(expected);
  });

  test("what is loud by other means is shown", () => {
    const steps = [read(), read(), read(), read()];
    expect(partsOf(steps, (one) => one === steps[1]).every((part) => part.kind === "step")).toBe(true);
  });

  test("a group says what it was", () => {
    expect(summaryOf([read(), read(), read(), ran(), ran()])).toBe("5 steps: read 3 files, ran 2 commands");
    expect(summaryOf([read(), thought(), ran(), call("Grep"), call("x_y")])).toBe(
      "4 steps: read a file, searched once, ran a command, used a tool",
    );
  });
});

describe("the line of a call", () => {
  test.each<[string, ToolCall, string]>([
    ["a command", call("bash", { input: { command: "npm test\nls" } }), "Ran npm test"],
    ["one that runs", call("shell", { status: "executing", input: { cmd: ["ls", "-l"] } }), "Running ls -l"],
    ["one that waits", call("Bash", { status: "pending", input: { command: "ls" } }), "Run ls"],
    [
      "a file below the directory",
      call("Read", { input: { path: "/w/src/a.py", offset: 10, limit: 5 } }),
      "Read src/a.py:10–14",
    ],
    ["a title that is a command", call("x", { kind: "execute", title: "`make all`" }), "Ran make all"],
    ["a title of the agent's own", call("x", { kind: "edit", title: "Edit main.py" }), " Edit main.py"],
    ["a search", call("grep", { input: { pattern: "TODO" } }), "Searched TODO"],
    ["a search of the web", call("web_search", { input: { query: "tides" } }), "Searched the web for tides"],
    ["a tool of a server", call("mcp__files__list"), "Used files · list"],
    ["nothing but a name", call("frobnicate"), " frobnicate"],
    ["nothing at all", call(""), " Tool call"],
  ])("%s", (_, one, expected) => {
    const { verb, about } = headOf(one, "/w");
    expect(`${verb} ${about}`).toBe(expected);
  });

  test("odd names are of no known kind", () => {
    for (const name of ["constructor", "__proto__", "toString"]) expect(kindOf(call(name))).toBe("other");
  });
});

test("tables may have quotes, separators and line ends in their cells", () => {
  expect(table('a,b\r\n"x, ""y""","1\n2"\n', ",", 10)).toEqual([
    ["a", "b"],
    ['x, "y"', "1\n2"],
  ]);
  expect(table("a\nb\nc", ",", 2)).toEqual([["a"], ["b"]]);
});

test("a file that was read has the numbers that the tool gave its lines", () => {
  expect(lines("    5\tx\n    6\ty\n", 1)).toEqual({ text: "x\ny", from: 5 });
  expect(lines("1 x\n3 y", 7)).toEqual({ text: "1 x\n3 y", from: 7 });
  expect(unfenced("```py\na\n\n```\n")).toBe("a\n");
});

test("what an edit wants to write is read from its input", () => {
  expect(wishesOf({ file_path: "a", old_string: "x", new_string: "y" })).toEqual([
    { path: "a", before: "x", after: "y" },
  ]);
  expect(wishesOf({ path: "a", edits: [{ old_string: "x", new_string: "y" }, 3] })).toEqual([
    { path: "a", before: "x", after: "y" },
  ]);
  expect(wishesOf({ files: [{ path: "b", content: "z" }] })).toEqual([{ path: "b", before: null, after: "z" }]);
  expect(wishesOf("x")).toEqual([]);
});
