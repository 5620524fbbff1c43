// @vitest-environment jsdom
import { h } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { describeRequest, summarizeRequest } from "../../src/app/approvals";
import { deciding } from "../../src/app/deciding";
import { countNeeded } from "../../src/app/notifying";
import type { ApprovalRow, SessionRow } from "../../src/app/rows";
import { register } from "../../src/app/shortcuts";
import type { Json, RuleOffer } from "../../src/model/wire.gen";
import { Asks } from "../../src/views/approvals/asks";
import { leaveForCard } from "../../src/views/approvals/focus";
import { ApprovalCentre } from "../../src/views/approvals/centre";
import { agentDescription, verdict } from "../../src/views/approvals/words";
import { approvalRow, Place } from "./approvals.world";

let place: Place;

beforeEach(() => {
  vi.useFakeTimers();
  deciding.value = new Map();
  localStorage.clear();
});

afterEach(async () => {
  place.leave();
  await pass(100); // what the view had planned for its next frame
  vi.useRealTimers();
});

function waiting(rows: ApprovalRow[], scopes?: string[]): void {
  place = new Place(scopes ? { scopes } : {});
  place.hub.approvals.value = rows;
  place.show(h(Asks, {}));
}

const pass = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);
const key = (name: string, init: KeyboardEventInit = {}, target: EventTarget = document.body) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...init }));
const decisions = () =>
  place.asked.filter(({ request }) => request?.method === "POST").map(({ request }) => request?.body);
/** Our words on the buttons, in their order. */
const labels = () => place.all(".ask-choices > button .ask-name > :first-child").map((one) => one.textContent);
const withRequest = (more: Partial<ApprovalRow["request"]>, id = "a1"): ApprovalRow => {
  const row = approvalRow(id);
  return { ...row, request: { ...row.request, ...more } };
};
const settled = (row: ApprovalRow, by: string, approved: boolean, resolvedBy = "user", reason = ""): ApprovalRow => ({
  ...row,
  state: "resolved",
  decidedBy: by,
  decision: { approved, resolvedBy, reason: reason || null },
});

test("the card shows the title, the whole command and Pilothouse's labels on its buttons", async () => {
  waiting([approvalRow("a1")]);
  await pass(50);
  expect(place.one(".ask-title").textContent).toBe("Run a command");
  expect(place.one("pre").textContent).toBe("npm test");
  expect(labels()).toEqual(["Allow once", "Deny"]);
  expect(place.button("Allow once").textContent).toContain("Agent's label: “Yes, this once”");
  expect(place.button("Deny").textContent).toContain("Agent's label: “No, not now”");
  expect(place.button("Allow once").className).toContain("primary");
});

test("words from right to left do not reorder a command", async () => {
  const preview = { type: "command", command: "mv אא בב > ג; cat é", workingDir: "/home/ada/project" } as const;
  waiting([withRequest({ preview, toolInput: { command: preview.command }, description: "Work" })]);
  await pass(50);
  expect(place.one("pre").innerHTML).toBe("mv <bdi>אא</bdi> <bdi>בב</bdi> &gt; <bdi>ג</bdi>; cat é");
  expect(place.one("pre").textContent).toBe(preview.command);
});

test("a command with variables is shown once", async () => {
  const toolInput = { command: "make", env: { A: "1" } };
  const preview = { type: "command", command: "A=1 make", workingDir: "/home/ada/project" } as const;
  waiting([withRequest({ preview, toolInput, description: "Run: make" })]);
  await pass(50);
  expect(place.all("pre").map((one) => one.textContent)).toEqual(["A=1 make", "A=1"]);
});

test("a variable with a line break does not look like two", async () => {
  const toolInput = { command: "make", env: [{ name: "A", value: "1\nPATH=/tmp" }] };
  const preview = { type: "command", command: "A='1\nPATH=/tmp' make", workingDir: "/home/ada/project" } as const;
  waiting([withRequest({ preview, toolInput, description: "Try it", origin: "hub" })]);
  await pass(50);
  expect(place.all("pre").at(-1)?.textContent).toBe('"A=1\\nPATH=/tmp"');
  expect(place.text).not.toContain("Agent's description");
});

test("a tap in the first moments decides nothing", async () => {
  waiting([approvalRow("a1")]);
  await pass(300);
  place.button("Allow once").click();
  key("a");
  expect(decisions()).toEqual([]);
  await pass(150);
  place.button("Allow once").click();
  await pass(50);
  expect(decisions()).toEqual([{ optionId: "yes" }]);
});

test("the next card under the finger has its first moments as well", async () => {
  const [first, second] = [approvalRow("a1"), approvalRow("a2", { created: "2026-03-01T10:00:01.000Z" })];
  waiting([first, second]);
  await pass(1000);
  expect(place.text).toContain("1 of 2");
  place.button("Allow once").click();
  place.hub.approvals.value = [second];
  await pass(60);
  place.button("Allow once").click();
  await pass(50);
  expect(place.asked.filter(({ request }) => request?.method === "POST").map(({ path }) => path)).toEqual([
    "approvals/a1",
  ]);
});

test.each([
  ["a", { optionId: "yes" }],
  ["d", { optionId: "no" }],
])("the key %s decides", async (letter, body) => {
  waiting([approvalRow("a1")]);
  await pass(500);
  key(letter);
  await pass(50);
  expect(decisions()).toEqual([body]);
});

test("letters that are typed, held or meant for something else decide nothing", async () => {
  waiting([approvalRow("a1")]);
  const field = document.body.appendChild(document.createElement("textarea"));
  await pass(500);
  key("a", {}, field);
  key("a", { repeat: true });
  key("a", { ctrlKey: true });
  key("a", { isComposing: true });
  const dialog = document.body.appendChild(document.createElement("dialog"));
  dialog.setAttribute("open", "");
  key("a");
  expect(decisions()).toEqual([]);
  dialog.remove();
  field.remove();
  key("a");
  await pass(50);
  expect(decisions()).toHaveLength(1);
});

test.each([
  ["types on", 100, 0],
  ["pauses, and then means it", 5000, 1],
])(
  "a reason whose card is decided elsewhere does not decide the next card; who wrote it %s",
  async (_, pause, count) => {
    waiting([approvalRow("a1"), approvalRow("a2")]);
    await pass(500);
    place.button("Deny with").click();
    await pass(50);
    key("b", {}, place.one("textarea"));
    place.hub.approvals.value = [approvalRow("a2")];
    for (const letter of "ecause ") {
      await pass(100);
      key(letter);
    }
    await pass(pause);
    key("a");
    await pass(50);
    expect(decisions()).toHaveLength(count);
  },
);

test("a card takes the focus from nothing", async () => {
  place = new Place();
  const field = document.body.appendChild(document.createElement("textarea"));
  field.focus();
  place.show(h(Asks, {}));
  place.hub.approvals.value = [approvalRow("a1")];
  await pass(1000);
  expect(place.all(".ask")).toHaveLength(1);
  expect(document.activeElement).toBe(field);
  field.remove();
});

/** A composer, with the focus in it, and then a card. */
async function askedWhileWriting(text: string, row = approvalRow("a1")): Promise<HTMLTextAreaElement> {
  place = new Place();
  place.show(h(Asks, {}));
  const field = document.body.appendChild(document.createElement("textarea"));
  field.className = "composer-field";
  field.value = text;
  field.focus();
  if (text) key(text.at(-1) ?? "", {}, field);
  place.hub.approvals.value = [row];
  await pass(50);
  return field;
}

const focused = () => document.activeElement;
const keysShown = () => place.all("kbd:not(.ask-key-off)").map((one) => one.textContent);

test("a field that is empty and idle gives its keys to the card, and has the focus again afterwards", async () => {
  const field = await askedWhileWriting("");
  expect(focused()).toBe(place.one(".ask"));
  expect(keysShown()).toEqual([]);
  await pass(2000);
  expect(keysShown()).toEqual(["a", "d"]);
  key("a", {}, place.one(".ask"));
  await pass(50);
  expect(decisions()).toEqual([{ optionId: "yes" }]);
  place.hub.approvals.value = [];
  await pass(50);
  expect(focused()).toBe(field);
  field.remove();
});

test("who begins to write just when a card comes writes into the field, and decides nothing", async () => {
  const field = await askedWhileWriting("");
  await pass(1000);
  key("a", {}, place.one(".ask"));
  expect(focused()).toBe(field);
  await pass(5000);
  key("a", {}, field);
  expect([decisions(), keysShown()]).toEqual([[], []]);
  expect(place.text).toContain("Esc, then a or d");
  field.remove();
});

test("who goes elsewhere from a card that has just come has seen it", async () => {
  const field = await askedWhileWriting("");
  await pass(500);
  place.one<HTMLElement>(".ask-body").focus();
  await pass(50);
  expect(keysShown()).toEqual(["a", "d"]);
  key("a", {}, place.one(".ask-body"));
  await pass(50);
  expect(decisions()).toEqual([{ optionId: "yes" }]);
  field.remove();
});

test.each([
  ["somebody writes", "half a thou", approvalRow("a1")],
  ["it is risky", "", { ...approvalRow("a1"), request: { ...approvalRow("a1").request, riskLevel: "high" as const } }],
])("the focus stays in the field where %s, until Esc", async (_, text, row) => {
  const field = await askedWhileWriting(text, row);
  await pass(3000);
  expect(focused()).toBe(field);
  expect(keysShown()).toEqual([]);
  expect(leaveForCard()).toBe(true);
  await pass(50);
  expect(keysShown()).toEqual(["a", "d"]);
  key("d", {}, place.one(".ask"));
  await pass(50);
  expect(decisions()).toEqual([{ optionId: "no" }]);
  field.remove();
});

const OFFERS: RuleOffer[] = [
  { offerId: "exact", text: "Call send with exactly these arguments", subject: "tools", pattern: "send" },
  { offerId: "any_arguments", text: "Call send with any arguments", subject: "tools", pattern: "send" },
];

test("always shows the exact reach of each rule first, and the chosen one is sent", async () => {
  waiting([withRequest({ ruleOffers: OFFERS })]);
  await pass(500);
  place.button("Always…").click();
  await pass(50);
  expect(place.all(".ask-offers label").map((one) => one.textContent?.trim())).toEqual([
    "Call send with exactly these arguments",
    "Call send with any arguments Wider",
  ]);
  const radios = place.all(".ask-offers input") as HTMLInputElement[];
  expect(radios.map(({ checked }) => checked)).toEqual([true, false]);
  radios[1]!.click();
  await pass(50);
  place.button("This project").click();
  await pass(50);
  expect(decisions()).toEqual([{ decision: "allow", remember: "project", rule: "any_arguments" }]);
});

test.each([
  ["writes", true],
  ["commands", false],
])("a rule for %s says whether its reach depends on the project", async (subject, isPath) => {
  waiting([withRequest({ ruleOffers: [{ offerId: "exact", text: "Write `a.txt`", subject, pattern: "./a.txt" }] })]);
  await pass(500);
  place.button("Always…").click();
  await pass(50);
  expect(place.text.includes("covers the file at this path in every project")).toBe(isPath);
});

test("the narrowest rule is stored unless another one is chosen, to deny as well", async () => {
  waiting([withRequest({ ruleOffers: OFFERS })]);
  await pass(500);
  place.button("Always…").click();
  await pass(50);
  place.button("Always deny").click();
  await pass(50);
  expect(place.text).toContain("Deny without asking:");
  place.button("Everywhere").click();
  await pass(50);
  expect(decisions()).toEqual([{ decision: "deny", remember: "everywhere", rule: "exact" }]);
});

test.each([
  ["No rule can cover this request, because it runs several commands.", "because it runs several commands"],
  [undefined, "No rule can be made for this request."],
])("without an offer always says why, and can be chosen for nothing", async (ruleRefusal, said) => {
  waiting([withRequest(ruleRefusal === undefined ? {} : { ruleRefusal })]);
  await pass(500);
  place.button("Always…").click();
  await pass(50);
  expect(place.one(".ask-panel").textContent).toContain(said);
  expect(place.all(".ask-panel .ask-choices button, .ask-panel input")).toEqual([]);
});

test.each([
  [{ ruleRefusal: "it changed meanwhile" }, "No rule was stored: it changed meanwhile"],
  [{ rule: { id: "rule_1", text: "Run exactly `npm test`" } }, "Rule stored: Run exactly npm test"],
])("whether a rule was stored is shown after the decision: %j", async (more, said) => {
  const row = withRequest({ ruleOffers: OFFERS });
  waiting([row]);
  const decided = settled(row, "laptop", true);
  place.answer = () => ({
    status: 200,
    body: { ...decided, decision: { ...decided.decision, ...more } } as unknown as Json,
  });
  await pass(500);
  place.button("Always…").click();
  await pass(50);
  place.button("This session").click();
  await pass(50);
  place.hub.decided.value = new Map([["a1", decided]]);
  place.hub.approvals.value = [];
  await pass(60);
  expect(place.one(".ask-decided").textContent).toContain(said);
});

test("a label that says the opposite of its option is flagged", async () => {
  const options = [
    { optionId: "x", name: "Deny", kind: "allow_once", label: "Allow once", isMisleading: true },
    { optionId: "y", name: "Accept", kind: "reject_once", label: "Deny", isMisleading: true },
  ];
  waiting([{ ...approvalRow("a1"), options }]);
  await pass(50);
  expect(labels()).toEqual(["Allow once", "Deny"]);
  expect(place.all(".ask-misleading").map((one) => one.textContent?.trim())).toEqual([
    "The agent labels this “Deny”, but it allows the request.",
    "The agent labels this “Accept”, but it denies the request.",
  ]);
  expect(place.all(".ask-choices .primary")).toEqual([]);
});

test("of a critical request Deny is the primary button, and nothing allows it always", async () => {
  waiting([withRequest({ riskLevel: "critical", ruleOffers: OFFERS })]);
  await pass(500);
  expect(labels()).toEqual(["Deny", "Allow once"]);
  expect(place.all(".ask-choices .primary").map((one) => one.textContent)).toEqual([expect.stringMatching(/^Deny/)]);
  expect(place.text).not.toContain("Always…");
  expect(place.text).not.toContain("Always allow");
  key("a");
  await pass(50);
  expect(decisions()).toEqual([]);
  place.button("Always deny…").click();
  await pass(50);
  expect(place.text).not.toContain("Always allow");
  place.button("This session").click();
  await pass(50);
  expect(decisions()).toEqual([{ decision: "deny", remember: "session", rule: "exact" }]);
});

test("notes of the hub stand above the preview and are marked as such", async () => {
  const notes = ["The agent did not ask for this. You allowed: `ls -la\u202e`.", "The change:\n-a\n+b"];
  waiting([withRequest({ notes, origin: "hub" })]);
  await pass(50);
  const box = place.one("[aria-label='Notes from Pilothouse']");
  expect(box.textContent).toContain("Pilothouse");
  expect([...box.querySelectorAll("li")].map((one) => one.textContent)).toEqual([
    "The agent did not ask for this. You allowed: ls -laU+202E.",
    "The change:-a\n+b",
  ]);
  expect(box.compareDocumentPosition(place.one(".ask-body")) & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
  expect(place.one(".ask-head").textContent).toContain("Asked by Pilothouse");
});

test("a directory that is not the session's, variables and other arguments of a command are shown", async () => {
  const toolInput = { command: "make", env: { LD_PRELOAD: "/tmp/x.so" }, timeout: 5 };
  waiting([withRequest({ toolInput, preview: { type: "command", command: "make", workingDir: "/etc/\u200b" } })]);
  place.hub.rows.value = new Map([["ses_1", { id: "ses_1", cwd: "/work", title: null } as SessionRow]]);
  await pass(50);
  expect(place.one(".ask-title").textContent).toBe("Run a command in another directory");
  expect(place.one(".ask-body").textContent).toContain("Working directory: /etc/U+200B (not the session's)");
  expect(place.one(".ask-body").textContent).toContain("LD_PRELOAD=/tmp/x.so");
  expect(place.one(".ask-input").textContent).toContain("timeout5");
  expect(place.one(".ask-input").textContent).not.toContain("make");
  expect(place.one(".ask-input").textContent).not.toContain("LD_PRELOAD");
  place.hub.approvals.value = [
    withRequest({ preview: { type: "command", command: "make", workingDir: "/work/" } }, "a2"),
  ];
  await pass(50);
  expect(place.text).not.toContain("Working directory");
});

/** The arguments in the open: name and text of each row. */
const argumentsShown = (within = ".ask-body") =>
  place
    .all(`${within} .ask-arg`)
    .map((row) =>
      [...row.children].map((cell) => cell.querySelector("pre")?.textContent ?? cell.textContent).join(": "),
    );

const TRANSFER = { to: "Eve", amount: 5000, code: "5000" };
const CHANGE = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+TWO\n";
const EDIT = { file_path: "/home/ada/project/a.txt", old_string: "two", new_string: "TWO", replace_all: false };

test("arguments are open where they are the request, and in front of a rule for exactly these", async () => {
  const offers: RuleOffer[] = [{ ...OFFERS[0]!, arguments: TRANSFER }, OFFERS[1]!];
  const preview = { type: "description" as const, text: "mcp__bank__transfer" };
  const tool = { toolName: "mcp__bank__transfer", description: "mcp__bank__transfer", toolInput: TRANSFER };
  waiting([withRequest({ ...tool, preview, ruleOffers: offers })]);
  await pass(500);
  const rows = ["to: Eve", "amount: 5000", 'code: "5000"'];
  expect(argumentsShown()).toEqual(rows);
  expect(place.all(".ask-body details .ask-arg")).toEqual([]);
  place.button("Always…").click();
  await pass(50);
  expect(argumentsShown(".ask-panel")).toEqual(rows);
  (place.all(".ask-offers input")[1] as HTMLInputElement).click();
  await pass(50);
  expect(argumentsShown(".ask-panel")).toEqual([]);
});

test("a plan that is only in the arguments is shown, and one that is the preview is not repeated", async () => {
  const plan = "# Plan\n1. delete it";
  const request = { toolName: "ExitPlanMode", description: "Ready to code?", choosesMode: true, toolInput: { plan } };
  waiting([withRequest({ ...request, preview: { type: "description", text: "ExitPlanMode" } })]);
  await pass(50);
  expect(argumentsShown()).toEqual([`plan: ${plan}`]);
  place.hub.approvals.value = [withRequest({ ...request, preview: { type: "description", text: plan } }, "a2")];
  await pass(50);
  expect(argumentsShown()).toEqual([]);
  expect(place.text).toContain("1. delete it");
});

test("a long argument loses its middle, and all of it can be seen", async () => {
  const long = `begin ${"x".repeat(5000)} end`;
  waiting([withRequest({ preview: { type: "description", text: "Ask" }, toolInput: { prompt: long } })]);
  await pass(50);
  expect(place.one(".ask-arg pre").textContent).toMatch(/^begin .*… .* characters ….* end$/s);
  place.button("Show all").click();
  await pass(50);
  expect(argumentsShown()).toEqual([`prompt: ${long}`]);
});

test.each([
  ["another file", { output_path: "/etc/passwd" }, ["output_path: /etc/passwd"]],
  ["a text that is not in the diff", { insert_text: "evil", insert_line: 3 }, ["insert_text: evil", "insert_line: 3"]],
  ["a command", { command: "rm -rf ~" }, ["command: rm -rf ~"]],
  ["the file of the same name elsewhere", { path: "/a.txt" }, ["path: /a.txt"]],
  ["a path with dots", { path: "../a.txt" }, ["path: ../a.txt"]],
  ["the same file again", { path: "./a.txt", paths: ["/home/ada/project/sub/../a.txt"] }, []],
])("a change with %s shows what its diff does not", async (_, more, rows) => {
  const preview = { type: "diff" as const, path: "/home/ada/project/a.txt", diff: CHANGE };
  waiting([withRequest({ toolName: "Edit", preview, toolInput: { ...EDIT, ...more } as never })]);
  place.hub.rows.value = new Map([["ses_1", { id: "ses_1", cwd: "/home/ada/project", title: null } as SessionRow]]);
  await pass(50);
  expect(argumentsShown()).toEqual(rows);
});

test("a form of questions shows what is not part of the questions", async () => {
  const questions = [{ question: "Which?", header: "Colour", options: [{ label: "Red", run: "x" }], then: "rm -rf x" }];
  waiting([withRequest({ questionIds: ["q1"], toolInput: { questions, note: "drop it" } as never })]);
  await pass(500);
  await vi.waitFor(() => expect(argumentsShown()).toHaveLength(2));
  const [odd, note] = argumentsShown();
  expect(odd).toContain('"then":"rm -rf x"');
  expect(odd).toContain('"run":"x"');
  expect(odd).not.toContain("Which?");
  expect(note).toBe("note: drop it");
});

test("texts that the hub lists below a command are arguments, not lines of the command", async () => {
  const command = "ls\nthen: 'rm -rf x' y\nuser: 0\nrun: a\nwith: b\nrun: a b";
  const preview = { type: "command" as const, command, workingDir: "" };
  waiting([
    withRequest({
      preview,
      toolInput: { command: "ls", then: ["rm -rf x", "y"], user: 0, run: { run: "a", with: "b" } },
    }),
  ]);
  await pass(50);
  expect(place.one(".ask-text.command pre").textContent).toBe("ls");
  expect(argumentsShown()).toEqual([`then: ["rm -rf x","y"]`, "user: 0", `run: {"run":"a","with":"b"}`]);
  const lines = "ls\nthen: rm -rf x";
  place.hub.approvals.value = [
    withRequest({ preview: { ...preview, command: lines }, toolInput: { command: lines, then: "rm -rf x" } }, "a2"),
  ];
  await pass(50);
  expect(place.one(".ask-text.command pre").textContent).toBe(lines);
});

test("that a command was not shown is said once", async () => {
  const text = "The agent did not show its command.";
  const preview = { type: "description" as const, text };
  waiting([withRequest({ description: "Run", preview, riskLevel: "high", riskReasons: [text], toolInput: {} })]);
  await pass(50);
  expect(place.text.split(text)).toHaveLength(2);
});

test("the title counts files by their headers, not by lines that look like them", () => {
  const diff = "--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,2 @@\n--- /dev/null\n-x\n+++ y\n+x\n";
  const preview = { type: "diff" as const, path: "/w/a.c", diff };
  expect(describeRequest({ ...approvalRow("a1").request, preview }, "/w")).toBe("Edit a.c");
});

test("a reason reaches the agent", async () => {
  waiting([approvalRow("a1")]);
  await pass(500);
  place.button("Deny with").click();
  await pass(50);
  const field = place.one<HTMLTextAreaElement>("textarea");
  field.value = " use the other table ";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await pass(50);
  place.one<HTMLFormElement>("form").requestSubmit();
  await pass(50);
  expect(decisions()).toEqual([{ optionId: "no", reason: "use the other table" }]);
});

test("who leaves a reason to write elsewhere is not called back by what happens", async () => {
  waiting([approvalRow("a1")]);
  await pass(500);
  place.button("Deny with").click();
  await pass(50);
  expect(document.activeElement).toBe(place.one("textarea"));
  const elsewhere = document.createElement("textarea");
  document.body.append(elsewhere);
  elsewhere.focus();
  place.happen({ type: "session:status_changed", previousStatus: "running", newStatus: "idle" });
  place.hub.approvals.value = [...place.hub.approvals.value, approvalRow("a2")];
  await pass(50);
  expect(place.text).toContain("1 of 2");
  expect(document.activeElement).toBe(elsewhere);
  elsewhere.remove();
});

test.each(["Always…", "Deny with"])("Esc goes back from %s, and does nothing else", async (name) => {
  const stopped = vi.fn();
  waiting([approvalRow("a1")]);
  const forget = register({ keys: "Escape", label: "Stop", group: "Composer", run: stopped });
  await pass(500);
  place.button(name).click();
  await pass(50);
  expect(place.one(".ask-panel").contains(document.activeElement)).toBe(true);
  (document.activeElement as HTMLElement).blur();
  key("Escape");
  await pass(50);
  expect(place.all(".ask-panel")).toEqual([]);
  expect(document.activeElement).toBe(place.button(name));
  expect(stopped).not.toHaveBeenCalled();
  forget();
});

test("while it is decided nothing else can be pressed", async () => {
  waiting([approvalRow("a1")]);
  place.answer = () => new Promise(() => {});
  await pass(500);
  place.button("Allow once").click();
  await pass(50);
  expect(place.button("Sending…").disabled).toBe(true);
  expect(place.all(".ask button:not(.copy)").every((one) => (one as HTMLButtonElement).disabled)).toBe(true);
});

test("a conflict names the winner, and the card turns into what was decided", async () => {
  const row = approvalRow("a1");
  waiting([row]);
  const details = { decision: { approved: true }, decidedBy: "phone" };
  place.answer = () => ({
    status: 409,
    body: { error: { code: "conflict", message: "m", recoverable: true, details } },
  });
  await pass(500);
  place.button("Deny").click();
  await pass(50);
  expect(place.one("[role=alert]").textContent).toBe("Too late: already allowed by phone.");
  place.hub.decided.value = new Map([["a1", settled(row, "phone", true)]]);
  place.hub.approvals.value = [];
  await pass(60);
  expect(place.all(".ask")).toHaveLength(0);
  expect(place.one(".ask-decided").textContent).toContain("Allowed by phone");
  await pass(7000);
  expect(place.all(".ask-decided")).toHaveLength(0);
});

test("of many decisions the last two are told, and the others never come back", async () => {
  const rows = ["a1", "a2", "a3"].map((id) => approvalRow(id));
  waiting(rows);
  await pass(50);
  for (const row of rows) {
    place.hub.decided.value = new Map([...place.hub.decided.value, [row.id, settled(row, `by ${row.id}`, true)]]);
    place.hub.approvals.value = place.hub.approvals.value.slice(1);
    await pass(50);
  }
  expect(place.all(".ask-decided strong").map((one) => one.textContent)).toEqual([
    "Allowed by by a2",
    "Allowed by by a3",
  ]);
  await pass(6100);
  expect(place.all(".ask-decided")).toHaveLength(0);
});

test("a countdown runs where there is a time limit", async () => {
  vi.setSystemTime(Date.parse("2026-03-01T10:00:00.000Z"));
  waiting([approvalRow("a1", { expires: "2026-03-01T10:01:30.000Z" })]);
  await pass(50);
  expect(place.one("[role=timer]").textContent).toBe("denied in 1:30");
  await pass(48_000);
  expect(place.one("[role=timer]").textContent).toBe("denied in 0:42");
  await pass(60_000);
  expect(place.one("[role=timer]").textContent).toBe("time is up");
});

test("from high on the reasons stand before what would be done, and nothing need be opened", async () => {
  const high = approvalRow("a1");
  const riskReasons = ["removes files", "far away", "of others", "and more", "and more yet"];
  high.request = { ...high.request, riskLevel: "high", riskReasons };
  waiting([high]);
  await pass(50);
  const warning = place.one(".ask-warning");
  expect([...warning.querySelectorAll(":scope > ul > li")].map((one) => one.textContent)).toEqual(
    riskReasons.slice(0, 3),
  );
  expect(warning.querySelector("summary")?.textContent).toBe("2 more reasons");
  const order = warning.compareDocumentPosition(place.one(".ask-body"));
  expect(order & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
  place.hub.approvals.value = [approvalRow("a2")];
  await pass(50);
  expect(place.all(".ask-warning")).toEqual([]);
  expect(place.one<HTMLDetailsElement>(".ask-body .ask-reasons").open).toBe(false);
});

test("what was decided is heard, but takes no room from the card that waits", async () => {
  const rows = [approvalRow("a1"), approvalRow("a2")];
  waiting(rows);
  await pass(50);
  place.hub.decided.value = new Map([["a1", settled(rows[0]!, "phone", true)]]);
  place.hub.approvals.value = rows.slice(1);
  await pass(50);
  expect(place.one(".ask-decided").closest(".aside")?.textContent).toContain("Allowed by phone");
  place.hub.approvals.value = [];
  await pass(50);
  expect(place.one(".ask-decided").closest(".aside")).toBeNull();
});

test("a device that may not approve is told so, and has no keys", async () => {
  waiting([approvalRow("a1")], ["read"]);
  await pass(500);
  key("a");
  expect(place.text).toContain("This device can only watch");
  expect(place.all(".ask-choices")).toHaveLength(0);
  expect(decisions()).toEqual([]);
});

test("the end of a long command is always in sight, and nothing in it hides", async () => {
  const command = Array.from({ length: 500 }, (_, line) => `echo ${line}`).join("\n") + "\u202e # end";
  waiting([withRequest({ preview: { type: "command", command, workingDir: "" } })]);
  await pass(50);
  const short = place.one("pre").textContent ?? "";
  expect(short).toMatch(/^echo 0\n/);
  expect(short).toMatch(/echo 299… [\d,]+ characters \(\d+ lines\) …echo 400\n/);
  expect(short).toContain("echo 499U+202E # end");
  expect(short).not.toContain("echo 350");
  place.button("Show all (500 lines)").click();
  await pass(50);
  expect(place.one("pre").textContent).toContain("echo 350");
});

test("a command of one long line keeps its end in the card, its label, the announcement and the list", async () => {
  const command = `echo ${"x ".repeat(20_000)}; rm -rf ~/important`;
  const row = withRequest({ preview: { type: "command", command, workingDir: "" } });
  waiting([row]);
  await pass(50);
  const shown = [place.one("pre").textContent, place.one("p[role=status].aside").textContent];
  place.leave();
  place = new Place();
  const old = settled({ ...row, resolved: "2026-03-01T09:00:00.000Z" }, "phone", true);
  place.answer = () => ({ status: 200, body: { approvals: [old] } as unknown as Json });
  place.show(h(ApprovalCentre, {}));
  await pass(60);
  for (const text of [...shown, place.one(".centre-row code").textContent]) {
    expect(text).toMatch(/echo x/);
    expect(text).toMatch(/… [\d,]+ characters …/);
    expect(text).toContain("rm -rf ~/important");
  }
});

test("a command of several lines shows all of them among the recent decisions", async () => {
  place = new Place();
  const preview = { type: "command" as const, command: "echo hello\n  rm -rf ~/important\n", workingDir: "" };
  const old = settled({ ...withRequest({ preview }), resolved: "2026-03-01T09:00:00.000Z" }, "phone", true);
  place.answer = () => ({ status: 200, body: { approvals: [old] } as unknown as Json });
  place.show(h(ApprovalCentre, {}));
  await pass(60);
  expect(place.one(".centre-row code").textContent).toBe("echo hello ↵ rm -rf ~/important");
});

test("invisible characters are shown in every text of a card", async () => {
  const odd = (text: string) => `${text}\u3164`;
  waiting([
    {
      ...withRequest({
        description: odd("words"),
        riskLevel: "high",
        riskReasons: [odd("reason")],
        notes: [odd("note")],
        ruleOffers: [{ ...OFFERS[0]!, text: odd("rule") }],
        preview: { type: "command", command: odd("command"), workingDir: odd("/dir") },
        toolInput: { env: [odd("A=b")], more: odd("argument") },
      }),
      options: [{ optionId: "yes", name: odd("Yes"), kind: "allow_once" }],
    },
  ]);
  await pass(500);
  const seen = () => place.all(".ask-unseen").map((one) => one.previousSibling?.textContent ?? "");
  expect(seen()).toHaveLength(8);
  place.button("Always…").click();
  await pass(50);
  expect(place.one(".ask-panel").textContent).toContain("ruleU+3164");
  expect(place.root.innerHTML).not.toContain("\u3164");
});

test("what agents write is text, never markup", async () => {
  const row = approvalRow("a1", {
    options: [{ optionId: "x", name: "<img src=x onerror=alert(1)>", kind: "allow_once" }],
  });
  row.request = {
    ...row.request,
    riskReasons: ["<script>1</script>"],
    preview: { type: "description", text: "<b>b</b>" },
  };
  waiting([row]);
  await pass(50);
  expect(place.all("img, script, b")).toHaveLength(0);
  expect(place.button("Allow once").textContent).toContain("“<img src=x onerror=alert(1)>”");
});

test("an agent that offers no way to allow can still be refused", async () => {
  waiting([approvalRow("a1", { options: [] })]);
  await pass(500);
  expect(place.text).toContain("no way to allow");
  key("a");
  place.button("Deny").click();
  await pass(50);
  expect(decisions()).toEqual([{ decision: "deny" }]);
});

const QUESTION = { type: "interaction:question", questionId: "q1", question: "Which?", options: ["A", "B"] };

test("an approval and a question about the same call are both shown", async () => {
  waiting([approvalRow("a1")]);
  place.tell("turn_started", { turnId: "t" });
  place.happen({ ...QUESTION, toolCallId: "call-a1" });
  await pass(50);
  expect(place.text).toContain("1 of 2");
  expect(place.all("[aria-label^='Approval:']")).toHaveLength(1);
  place.button("Next").click();
  await pass(50);
  await vi.waitFor(() => expect(place.one("[aria-label='Question']").textContent).toContain("Which?"));
  expect(place.text).toContain("2 of 2");
});

/** An approval of a tool that asks its user two questions. */
async function askedByTool(scopes?: string[]): Promise<void> {
  const row = withRequest({ toolName: "AskUserQuestion", questionIds: ["q1", "q2"], riskLevel: "low" });
  waiting([row], scopes);
  place.tell("turn_started", { turnId: "t" });
  place.happen(
    { ...QUESTION, toolCallId: "call-a1" },
    { type: "interaction:question", questionId: "q2", question: "And why?", toolCallId: "call-a1" },
  );
  await pass(50);
  await vi.waitFor(() => expect(place.text).toContain("And why?"));
  await pass(500);
}

test("the questions of a tool are the form of its approval, and their answers allow it", async () => {
  await askedByTool();
  expect(place.all(".ask")).toHaveLength(1);
  expect(place.text).not.toContain("1 of 2");
  expect(place.text).not.toContain("Allow once");
  expect(place.button("Send answers").disabled).toBe(true);
  place.all("input[type=radio]")[1]!.click();
  const field = place.one<HTMLTextAreaElement>("textarea");
  field.value = " because ";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await pass(50);
  expect(place.button("Send answers").disabled).toBe(false);
  place.one<HTMLFormElement>("form").requestSubmit();
  await pass(50);
  expect(decisions()).toEqual([{ decision: "allow", answers: { q1: "B", q2: "because" } }]);
  expect(place.commands).toEqual([]);
});

test("declining the questions of a tool denies its approval", async () => {
  await askedByTool();
  place.button("Decline").click();
  await pass(50);
  expect(decisions()).toEqual([{ optionId: "no" }]);
});

test("a device that may not approve sees the questions of a tool", async () => {
  await askedByTool(["read"]);
  expect(place.text).toContain("Which?");
  expect(place.text).toContain("This device can only watch");
  expect(place.all("input, textarea")).toEqual([]);
});

test("questions that are not known yet cannot be answered, only declined", async () => {
  waiting([withRequest({ questionIds: ["q1"] })]);
  await pass(500);
  await vi.waitFor(() => expect(place.text).toContain("not available yet"));
  expect(place.button("Send answers").disabled).toBe(true);
  expect(place.button("Decline").disabled).toBe(false);
});

test("the centre has all sessions, with links, and who decided what", async () => {
  place = new Place();
  const old = settled(approvalRow("old", { resolved: "2026-03-01T09:00:00.000Z" }), "always:rule_1", false, "policy");
  place.answer = () => ({ status: 200, body: { approvals: [old] } as unknown as Json });
  place.hub.approvals.value = [approvalRow("a1"), approvalRow("a2", { sessionId: "ses_2" })];
  place.show(h(ApprovalCentre, {}));
  await pass(60);
  expect(place.all(".centre-group h2 a").map((one) => one.getAttribute("href"))).toEqual([
    "#/session/ses_1",
    "#/session/ses_2",
  ]);
  expect(place.one(".centre-row").textContent).toContain("Denied by rule always:rule_1");
});

test("by you is what this browser decided, whoever else is called so", async () => {
  waiting([approvalRow("a1")]);
  await pass(500);
  place.button("Allow once").click();
  await pass(50);
  place.leave();
  place = new Place();
  const done = ["a1", "a2"].map((id) =>
    settled(approvalRow(id, { resolved: `2026-03-01T09:00:0${id[1]}.000Z` }), "laptop", true),
  );
  place.answer = () => ({ status: 200, body: { approvals: done } as unknown as Json });
  place.show(h(ApprovalCentre, {}));
  await pass(60);
  const told = place.all(".centre-row").map((one) => one.textContent);
  expect(told[0]).toContain("Allowed by laptop");
  expect(told[1]).toContain("Allowed by you (laptop)");
});

test("the centre leads to the sessions that ask a question, and says of none that nobody waits", async () => {
  place = new Place();
  place.answer = ({ path }) => ({
    status: 200,
    body: path.startsWith("sessions/")
      ? { pendingQuestions: [{ question: "Which colour?" }] }
      : ({ approvals: [] } as Json),
  });
  const asks: SessionRow = {
    id: "ses_3",
    agent: "demo",
    cwd: "/w",
    title: "Which one",
    status: "waiting_for_input",
    created: "2026-03-01T09:00:00.000Z",
    updated: "2026-03-01T09:00:00.000Z",
    archived: null,
    seq: 3,
    pendingApprovals: 0,
    queueLength: 0,
  };
  place.hub.rows.value = new Map([[asks.id, asks]]);
  place.show(h(ApprovalCentre, {}));
  await pass(60);
  expect(place.one(".centre-question p").textContent).toBe("Which colour?");
  expect(place.one(".centre-question a").getAttribute("href")).toBe(`#/session/${asks.id}`);
  expect(place.text).not.toContain("No pending approvals");
  expect(countNeeded(place.hub)).toBe(1);
  expect(countNeeded(place.hub, asks.id)).toBe(0);
});

test("the centre shows every approval and every question of a session, and one card for those that belong together", async () => {
  place = new Place();
  const questions = [
    { questionId: "q1", question: "Part of it?", options: ["A"] },
    { questionId: "q2", question: "On its own?", toolCallId: "call-a2" },
  ];
  place.answer = ({ path }) => ({
    status: 200,
    body: (path.startsWith("sessions/") ? { pendingQuestions: questions } : { approvals: [] }) as Json,
  });
  const row = { id: "ses_1", status: "waiting_for_approval", cwd: "/w", title: "T", seq: 1, pendingApprovals: 2 };
  place.hub.rows.value = new Map([["ses_1", row as SessionRow]]);
  place.hub.approvals.value = [withRequest({ questionIds: ["q1"] }), approvalRow("a2")];
  place.show(h(ApprovalCentre, {}));
  await pass(60);
  await vi.waitFor(() => expect(place.all(".ask form")).toHaveLength(1));
  expect(place.one(".ask form").textContent).toContain("Part of it?");
  expect(place.all("[aria-label^='Approval:']")).toHaveLength(2);
  expect(place.all(".centre-question").map((one) => one.textContent)).toEqual(["On its own?Answer"]);
});

test("a question that is left after the approval is shown and counted", async () => {
  place = new Place();
  place.answer = ({ path }) => ({
    status: 200,
    body: (path.startsWith("sessions/")
      ? { pendingQuestions: [{ questionId: "q1", question: "Still there?" }] }
      : { approvals: [] }) as Json,
  });
  const row = { id: "ses_1", status: "waiting_for_approval", cwd: "/w", title: "T", seq: 1, pendingApprovals: 0 };
  place.hub.rows.value = new Map([["ses_1", row as SessionRow]]);
  place.show(h(ApprovalCentre, {}));
  await pass(60);
  expect(place.one(".centre-question").textContent).toContain("Still there?");
  expect(place.text).not.toContain("No pending approvals");
  expect(countNeeded(place.hub)).toBe(1);
});

test("a question that is part of an approval is counted once", () => {
  place = new Place();
  const row = { id: "ses_1", status: "waiting_for_input", pendingApprovals: 1 } as SessionRow;
  place.hub.rows.value = new Map([["ses_1", row]]);
  place.hub.approvals.value = [withRequest({ questionIds: ["q1"] })];
  expect(countNeeded(place.hub)).toBe(1);
  place.hub.approvals.value = [approvalRow("a1")];
  expect(countNeeded(place.hub)).toBe(2);
});

test("before the hub has told what waits, the centre does not say that nobody does; a kept list counts", async () => {
  place = new Place();
  place.hub.me.value = null;
  place.hub.status.value = { phase: "connecting", lane: "socket", seen: null };
  const kept = { id: "ses_4", status: "waiting_for_approval", pendingApprovals: 2 } as SessionRow;
  place.hub.rows.value = new Map([[kept.id, kept]]);
  place.show(h(ApprovalCentre, {}));
  await pass(60);
  expect(place.text).not.toContain("No pending approvals");
  await pass(5000);
  expect(place.text).toContain("when the hub is reached");
  expect(countNeeded(place.hub)).toBe(2);
  place.hub.me.value = { name: "laptop", scopes: ["read"] };
  await pass(60);
  expect(place.text).toContain("No pending approvals");
  expect(countNeeded(place.hub)).toBe(0);
});

test("what waits is said aloud once, with its name", async () => {
  waiting([approvalRow("a1"), approvalRow("a2")]);
  await pass(50);
  expect(place.one("p[role=status].aside").textContent).toBe("Waiting for you: npm test, and 1 more");
});

test("requests and decisions in words", () => {
  place = new Place();
  const row = approvalRow("x");
  const diff = (text: string) => ({
    ...row.request,
    preview: { type: "diff" as const, path: "/w/src/a.py", diff: text },
  });
  expect(describeRequest(diff("@@ -1 +1 @@\n-a\n+b\n"), "/w")).toBe("Edit src/a.py");
  expect(describeRequest(diff("--- /dev/null\n+++ b/a.py\n"), "/w/")).toBe("Create src/a.py");
  expect(describeRequest(diff("--- a/x\n+++ b/x\n--- a/y\n+++ b/y\n"), "/w")).toBe("Change 2 files");
  expect(describeRequest(diff("@@ -1 +1 @@\n-a\n+b\n"), "/home/ada")).toBe("Edit /w/src/a.py");
  expect(summarizeRequest(row.request)).toBe("npm test");
  const described = (description: string) => agentDescription({ ...row, request: { ...row.request, description } });
  expect([described("Run: npm test"), described("npm …"), described("`npm test`")]).toEqual(["", "", ""]);
  expect([described("Try it"), described("npm test (harmless)")]).toEqual(["Try it", "npm test (harmless)"]);
  const change = { type: "diff", path: "/home/ada/project/src/a b.py", diff: "" } as const;
  const changed = (description: string) =>
    agentDescription({ ...row, request: { ...row.request, preview: change, description } });
  for (const plain of [
    "Edit `src/a b.py`",
    "Writing to /home/ada/project/src/a b.py",
    "a b.py and 2 more",
    "Update (3 files)",
  ])
    expect(changed(plain), plain).toBe("");
  for (const more of ["Edit a b.py && rm -rf victim", "`rm -rf victim`", "Edit src/other.py", "Fix the typo"])
    expect(changed(more)).toBe(more);
  expect(verdict(settled(row, "laptop", false), true).text).toBe("Denied by you (laptop)");
  expect(verdict(settled(row, "timeout", false, "timeout")).text).toBe("Denied: no decision in time");
  expect(verdict(settled(row, "", false, "cancelled")).text).toBe("Cancelled with the turn");
  const withdrawn = settled(row, "", false, "cancelled", "The agent changed the call.");
  expect(verdict(withdrawn)).toMatchObject({ text: "Cancelled", reason: "The agent changed the call." });
});
