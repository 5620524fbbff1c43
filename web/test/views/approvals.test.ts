// @vitest-environment jsdom
import { h } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { deciding } from "../../src/app/deciding";
import { countNeeded } from "../../src/app/notifying";
import type { ApprovalRow, SessionRow } from "../../src/app/rows";
import { register } from "../../src/app/shortcuts";
import type { Json } from "../../src/model/wire.gen";
import { Asks } from "../../src/views/approvals/asks";
import { leaveForCard } from "../../src/views/approvals/focus";
import { ApprovalCentre } from "../../src/views/approvals/centre";
import { asked, remark, verdict } from "../../src/views/approvals/words";
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
const settled = (row: ApprovalRow, by: string, approved: boolean, resolvedBy = "user"): ApprovalRow => ({
  ...row,
  state: "resolved",
  decidedBy: by,
  decision: { approved, resolvedBy, reason: null },
});

test("the card says what is asked, shows the whole command, and has the agent's own words on its buttons", async () => {
  waiting([approvalRow("a1")]);
  await pass(50);
  expect(place.one(".ask-title").textContent).toBe("Run a command in ~/project");
  expect(place.one("pre").textContent).toBe("npm test");
  expect(place.all(".ask-choices > button").map((one) => one.firstChild?.textContent)).toEqual([
    "Yes, this once",
    "Yes, always",
    "No, not now",
  ]);
  expect(place.button("Yes, this once").className).toContain("primary");
});

test("a tap in the first moments decides nothing", async () => {
  waiting([approvalRow("a1")]);
  await pass(300);
  place.button("Yes, this once").click();
  key("a");
  expect(decisions()).toEqual([]);
  await pass(150);
  place.button("Yes, this once").click();
  await pass(50);
  expect(decisions()).toEqual([{ optionId: "yes" }]);
});

test("the next card under the finger has its first moments as well", async () => {
  const [first, second] = [approvalRow("a1"), approvalRow("a2", { created: "2026-03-01T10:00:01.000Z" })];
  waiting([first, second]);
  await pass(1000);
  expect(place.text).toContain("1 of 2");
  place.button("Yes, this once").click();
  place.hub.approvals.value = [second];
  await pass(60);
  place.button("Yes, this once").click();
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

test("always has a reach, and says so to the hub", async () => {
  waiting([approvalRow("a1")]);
  await pass(500);
  place.button("Always…").click();
  await pass(50);
  place.button("In this project").click();
  await pass(50);
  expect(decisions()).toEqual([{ decision: "allow", remember: "project" }]);
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
  place.button("Yes, this once").click();
  await pass(50);
  expect(place.button("Deciding…").disabled).toBe(true);
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
  place.button("No, not now").click();
  await pass(50);
  expect(place.one("[role=alert]").textContent).toBe("Too late: allowed by phone already.");
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
  expect(place.text).toContain("This device may only watch");
  expect(place.all(".ask-choices")).toHaveLength(0);
  expect(decisions()).toEqual([]);
});

test("a long command can be seen to its end, and nothing in it hides", async () => {
  const command = Array.from({ length: 500 }, (_, line) => `echo ${line}`).join("\n") + "\u202e # end";
  const row = approvalRow("a1");
  row.request = { ...row.request, preview: { type: "command", command, workingDir: "" } };
  waiting([row]);
  await pass(50);
  expect(place.one("pre").textContent).not.toContain("# end");
  place.button("Show all (500 lines)").click();
  await pass(50);
  expect(place.one("pre").textContent).toContain("echo 499U+202E # end");
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
  expect(place.button("<img src=x")).toBeTruthy();
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

test("a tool that asks its user is answered by its question alone", async () => {
  waiting([approvalRow("a1")]);
  place.happen(
    { type: "custom", namespace: "pilothouse", eventName: "turn_started", data: { turnId: "t" } },
    { type: "interaction:question", questionId: "q1", question: "Which?", options: ["A", "B"], toolCallId: "call-a1" },
  );
  await pass(50);
  await vi.waitFor(() => expect(place.text).toContain("Which?"));
  expect(place.all('[aria-label^="Approval:"]')).toHaveLength(0);
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
  place.button("Yes, this once").click();
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
  expect(place.text).not.toContain("Nobody waits");
  expect(countNeeded(place.hub)).toBe(1);
  expect(countNeeded(place.hub, asks.id)).toBe(0);
});

test("before the hub has told what waits, the centre does not say that nobody does; a kept list counts", async () => {
  place = new Place();
  place.hub.me.value = null;
  place.hub.status.value = { phase: "connecting", lane: "socket", seen: null };
  const kept = { id: "ses_4", status: "waiting_for_approval", pendingApprovals: 2 } as SessionRow;
  place.hub.rows.value = new Map([[kept.id, kept]]);
  place.show(h(ApprovalCentre, {}));
  await pass(60);
  expect(place.text).not.toContain("Nobody waits");
  await pass(5000);
  expect(place.text).toContain("as soon as the hub is reached");
  expect(countNeeded(place.hub)).toBe(2);
  place.hub.me.value = { name: "laptop", scopes: ["read"] };
  await pass(60);
  expect(place.text).toContain("Nobody waits");
  expect(countNeeded(place.hub)).toBe(0);
});

test("what waits is said aloud once, with its name", async () => {
  waiting([approvalRow("a1"), approvalRow("a2")]);
  await pass(50);
  expect(place.one("p[role=status].aside").textContent).toBe("Waiting for you: Run a command in ~/project, and 1 more");
});

test("sentences", () => {
  place = new Place();
  const row = approvalRow("x");
  const diff = (text: string): ApprovalRow => ({
    ...row,
    request: { ...row.request, preview: { type: "diff", path: "/w/src/a.py", diff: text } },
  });
  expect(asked(diff("@@ -1 +1 @@\n-a\n+b\n"), "/w")).toBe("Edit src/a.py");
  expect(asked(diff("--- /dev/null\n+++ b/a.py\n"), "/w/")).toBe("Create src/a.py");
  expect(asked(diff("--- a/x\n+++ b/x\n--- a/y\n+++ b/y\n"), "/w")).toBe("Change 2 files");
  expect(remark(row)).toBe("");
  expect(remark({ ...row, request: { ...row.request, description: "Try it" } })).toBe("Try it");
  expect(verdict(settled(row, "laptop", false), true).text).toBe("Denied by you (laptop)");
  expect(verdict(settled(row, "timeout", false, "timeout")).text).toBe("Denied: nobody decided in time");
});
