// @vitest-environment jsdom
import { h } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type FoundSession, unfolded, wish } from "../../src/app/found";
import { route } from "../../src/app/route";
import { toasts } from "../../src/app/toasts";
import { Wished } from "../../src/views/found/lazy";
import { FoundSection } from "../../src/views/found/section";
import { Watched } from "../../src/views/found/watched";
import { row, World } from "./sessions.world";

const found = (id: string, more: Partial<FoundSession> = {}): FoundSession => ({
  id,
  agent: "claude",
  projectPath: "/home/ada/shop",
  projectName: "shop",
  lastActivity: "2026-01-01T00:00:00Z",
  sessionName: `Name of ${id}`,
  lastMessage: `Last of ${id}`,
  status: "idle",
  ...more,
});

let world: World;

beforeEach(() => {
  localStorage.clear();
  location.hash = "";
  unfolded.value = true;
  wish.value = null;
  toasts.value = [];
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
});
afterEach(() => world.close());

const until = (check: () => void): Promise<void> =>
  vi.waitFor(
    async () => {
      await world.settle();
      check();
    },
    { timeout: 10_000 },
  );

/** The list and the rest of the page, once the list was read. */
async function listed(sessions: FoundSession[], more: object = {}, text = ""): Promise<void> {
  world.answer(/^GET discovered/, { sessions, problems: [], ...more });
  world.list();
  world.show([h(FoundSection, { text }), h(Wished, {})]);
  await until(() => expect(world.text).not.toContain("Looking…"));
  await until(() => expect(world.all(".found-row, .session-note").length).toBeGreaterThan(0));
}

const posted = () => world.asked.filter(({ method }) => method === "POST").map(({ path, body }) => [path, body]);

test("nothing is asked for until somebody unfolds it, and that is remembered", async () => {
  world = new World();
  unfolded.value = false;
  world.list();
  world.show(h(FoundSection, { text: "" }));
  await world.settle();
  expect(world.asked.filter(({ path }) => path.startsWith("discovered"))).toEqual([]);
  world.answer(/^GET discovered/, { sessions: [found("a")], problems: [] });
  await world.press("Found on this machine");
  await until(() => expect(world.text).toContain("Name of a"));
  expect(localStorage.getItem("pilothouse:found")).toBe("true");
});

test("each says what it is; those that are in the list above are not listed twice", async () => {
  world = new World();
  await listed([
    found("a", { status: "running", model: "opus" }),
    found("b", { status: "waiting" }),
    found("c", { pid: 42 }),
    found("d", { hubSessionId: "ses_1" }),
  ]);
  const rows = world.all(".found-row").map((one) => one.textContent);
  expect(rows).toHaveLength(3);
  expect(rows[0]).toContain("claude · shop · opus");
  expect(rows[0]).toContain("working");
  expect(rows[0]).toContain("Last of a");
  expect(rows[1]).toContain("waits there");
  expect(rows[2]).toContain("open there");
});

test("words that are looked for in the list are looked for here", async () => {
  world = new World();
  await listed([found("a"), found("b", { lastMessage: "about pears" })], {}, "PEARS");
  expect(world.all(".found-row")).toHaveLength(1);
  expect(world.text).toContain("Name of b");
});

test("many come some at a time, and what cannot be read is told to who asks", async () => {
  world = new World();
  const many = Array.from({ length: 45 }, (_, at) => found(`n${at}`));
  await listed(many, { problems: [{ path: "/x/y.jsonl", message: "no JSON" }] });
  expect(world.all(".found-row")).toHaveLength(20);
  await world.press("Show more (25)");
  expect(world.all(".found-row")).toHaveLength(40);
  const problems = world.find<HTMLDetailsElement>(".found-problems");
  expect(problems.open).toBe(false);
  expect(problems.textContent).toContain("1 record cannot be read");
  expect(problems.textContent).toContain("/x/y.jsonl: no JSON");
});

test("a hub that cannot look says why, and can be asked again", async () => {
  world = new World();
  world.refuse(/^GET discovered/, 502, "agent_failed", "the disk is gone");
  world.list();
  world.show(h(FoundSection, { text: "" }));
  await until(() => expect(world.text).toContain("the disk is gone"));
  world.answer(/^GET discovered\?refresh=true/, { sessions: [found("a")], problems: [] });
  await world.press("Try again");
  await until(() => expect(world.text).toContain("Name of a"));
});

test("watching one leads to the hub's session of it", async () => {
  world = new World();
  await listed([found("a")]);
  world.answer(/^POST discovered\/watch/, row("ses_9", { watched: true }));
  await world.press("Watch");
  await until(() => expect(route.value).toEqual({ view: "session", id: "ses_9" }));
  expect(posted()).toEqual([["discovered/watch", { agent: "claude", sessionId: "a" }]]);
  expect(wish.value).toBeNull();
});

test("what somebody else has is refused with the hub's choices; ending a program is asked about", async () => {
  world = new World();
  await listed([found("a", { pid: 41 })]);
  const choices = ["watch", "fork", "take_over"];
  world.refuse(/^POST discovered\/adopt/, 409, "held", "a program has it", { choices, pid: 42 });
  await world.press("Continue");
  await until(() => expect(world.text).toContain("process 42 has it"));
  const offered = world.all(".found-choices button").map((one) => one.textContent);
  expect(offered).toEqual(["Watch", "Fork", "Take over…"]);
  await world.press("Take over…");
  expect(posted()).toHaveLength(1);
  expect(world.text).toContain("(process 42)");
  world.answer(/^POST discovered\/adopt/, row("ses_7"));
  await world.press("End it and take over");
  await until(() => expect(route.value).toEqual({ view: "session", id: "ses_7" }));
  expect(posted().at(-1)).toEqual(["discovered/adopt", { agent: "claude", sessionId: "a", how: "take_over", pid: 42 }]);
});

test("taking over is asked about before anything is done, and can be left", async () => {
  world = new World();
  await listed([found("a", { pid: 41 })]);
  await world.press("More for Name of a");
  await world.press("Take over…");
  await until(() => expect(world.text).toContain("(process 41) is ended"));
  await world.press("Leave it");
  expect(posted()).toEqual([]);
  expect(world.all("dialog")).toHaveLength(0);
});

test("what goes wrong is said in the hub's words", async () => {
  world = new World();
  await listed([found("a")]);
  world.refuse(/^POST discovered\/adopt/, 502, "agent_failed", "claude is not installed");
  await world.press("Continue");
  await until(() =>
    expect(toasts.value.map(({ text }) => text)).toEqual(["It cannot be continued: claude is not installed"]),
  );
  expect(wish.value).toBeNull();
});

test("who may only read has no buttons, and who may not approve ends no program", async () => {
  world = new World(["read"]);
  await listed([found("a", { pid: 41 })]);
  expect(world.all(".found-ways")).toHaveLength(0);
  world.close();
  world = new World(["read", "prompt"]);
  await listed([found("a", { pid: 41 })]);
  await world.press("More for Name of a");
  expect(world.all("[role=menuitem]").map((one) => one.textContent)).toEqual(["Fork"]);
});

test("below a watched session stands who has it, and how to go on with it", async () => {
  world = new World();
  const one = found("a", { hubSessionId: "ses_1", pid: 41 });
  world.answer(/^GET discovered/, { sessions: [one], problems: [] });
  world.list(row("ses_1", { watched: true }));
  world.show([h(Watched, { sessionId: "ses_1" }), h(Wished, {})]);
  await until(() => expect(world.text).toContain("claude has it elsewhere (process 41)"));
  expect(world.all(".watched button").map((button) => button.textContent)).toEqual(["Continue", "Fork", "Take over…"]);
  world.answer(/^POST discovered\/adopt/, row("ses_2"));
  await world.press("Fork");
  await until(() => expect(route.value).toEqual({ view: "session", id: "ses_2" }));
  expect(posted()).toEqual([["discovered/adopt", { agent: "claude", sessionId: "a", how: "fork" }]]);
});
