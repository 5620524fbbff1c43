// @vitest-environment jsdom
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watchNotifications } from "../../src/app/notifying";
import { notify } from "../../src/app/settings";
import { visible } from "../../src/app/unread";
import { approval, row, World } from "../views/sessions.world";

class Note {
  static permission = "granted";
  static all: Note[] = [];
  onclick: (() => void) | null = null;
  closed = false;
  constructor(
    readonly title: string,
    readonly options: { tag: string; body: string },
  ) {
    Note.all.push(this);
  }
  close(): void {
    this.closed = true;
  }
}

/** The tabs of one browser hear each other at once. */
class Channel {
  static all: Channel[] = [];
  onmessage: ((event: { data: unknown }) => void) | null = null;
  constructor() {
    Channel.all.push(this);
  }
  postMessage(data: unknown): void {
    for (const one of Channel.all) if (one !== this) one.onmessage?.({ data });
  }
  close(): void {
    Channel.all = Channel.all.filter((one) => one !== this);
  }
}

const badges: number[] = [];
const stops: (() => void)[] = [];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  vi.stubGlobal("Notification", Note);
  vi.stubGlobal("BroadcastChannel", Channel);
  vi.stubGlobal("focus", () => {});
  Object.assign(navigator, {
    setAppBadge: async (count: number) => void badges.push(count),
    clearAppBadge: async () => void badges.push(0),
  });
  Note.all = [];
  Note.permission = "granted";
  badges.length = 0;
  notify.value = true;
  visible.value = false;
  goTo("#/");
});
afterEach(() => {
  stops.splice(0).forEach((stop) => stop());
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const goTo = (hash: string) =>
  act(() => {
    location.hash = hash;
    window.dispatchEvent(new Event("hashchange"));
  });
function tab(): World {
  const world = new World();
  stops.push(watchNotifications(world.hub));
  return world;
}
const pass = () => vi.advanceTimersByTime(500);
const shown = () => Note.all.map(({ title, options }) => `${title}: ${options.body}`);
const ask = (world: World, id: string) => world.say({ type: "approval_requested", approval: approval(id, "one") });

test("an approval is told once, with the session's name, and leads there", () => {
  const world = tab();
  world.list(row("one"));
  world.say({ type: "approvals", approvals: [] });
  ask(world, "a1");
  ask(world, "a1");
  pass();
  expect(shown()).toEqual(["Approval needed: Title of one\nRun npm test"]);
  Note.all[0]?.onclick?.();
  expect(location.hash).toBe("#/session/one");
});

test("a notification shows the command, its end, and what is invisible in it", () => {
  const world = tab();
  world.list(row("one"));
  world.say({ type: "approvals", approvals: [] });
  const asked = approval("a1", "one");
  const command = `echo ${"x".repeat(500)}\nrm -rf ~\u200b`;
  asked.request.preview = { type: "command", command, workingDir: "" };
  world.say({ type: "approval_requested", approval: asked });
  pass();
  expect(shown()).toEqual([expect.stringMatching(/\necho x+ … \d+ characters … x+ ↵ rm -rf ~U\+200B$/)]);
});

test.each([
  ["before", true],
  ["behind", false],
])("a question that is part of an approval is announced once, %s it", (_, first) => {
  const world = tab();
  world.list(row("one", { status: "running" }));
  world.say({ type: "approvals", approvals: [] });
  const asked = approval("a1", "one");
  asked.request.questionIds = ["q1"];
  const change = () => world.change(row("one", { status: "waiting_for_input" }));
  if (first) change();
  world.say({ type: "approval_requested", approval: asked });
  if (!first) change();
  pass();
  expect(shown()).toEqual(["A question for you: Title of one\nQuestion from the agent"]);
});

test("one that the service worker shows, as on a phone, leads there as well", () => {
  const worker = new EventTarget();
  Object.defineProperty(navigator, "serviceWorker", { value: worker, configurable: true });
  tab();
  const touched = (data: unknown) => worker.dispatchEvent(new MessageEvent("message", { data }));
  touched({ sessionId: 7 });
  touched(null);
  expect(location.hash).toBe("#/");
  touched({ sessionId: "ses/1" });
  expect(location.hash).toBe("#/session/ses%2F1");
  Reflect.deleteProperty(navigator, "serviceWorker");
});

test("what waited when the page was opened is no news", () => {
  const world = tab();
  world.say({ type: "approvals", approvals: [approval("a1", "one")] });
  world.list(row("one", { status: "waiting_for_approval" }));
  pass();
  expect(shown()).toEqual([]);
});

test("a decision elsewhere takes the notification away, also one that is not shown yet", () => {
  const world = tab();
  world.list(row("one"));
  ask(world, "a1");
  pass();
  ask(world, "a2");
  world.say({ type: "approval_resolved", approval: approval("a1", "one") });
  world.say({ type: "approval_resolved", approval: approval("a2", "one") });
  pass();
  expect(Note.all.map((one) => one.closed)).toEqual([true]);
});

test("a question, an end and a failure are told", () => {
  const world = tab();
  world.list(row("one", { status: "running" }), row("two", { status: "running" }), row("three", { status: "running" }));
  world.change(row("one", { status: "waiting_for_input" }));
  world.change(row("two", { status: "idle" }));
  world.change(row("three", { status: "error" }));
  pass();
  expect(shown().toSorted()).toEqual([
    "A question for you: Title of one",
    "Failed: Title of three",
    "Finished: Title of two",
  ]);
  world.change(row("one", { status: "running" }));
  expect(Note.all.filter((one) => one.closed).map((one) => one.title)).toEqual(["A question for you"]);
});

test("a session that only appears, or is renamed, is not told", () => {
  const world = tab();
  world.list(row("one"));
  world.change(row("two"));
  world.change(row("one", { title: "Another" }));
  pass();
  expect(shown()).toEqual([]);
});

test("of two tabs only one tells it", () => {
  const [first, second] = [tab(), tab()];
  for (const world of [first, second]) world.list(row("one"));
  for (const world of [first, second]) ask(world, "a1");
  pass();
  expect(shown()).toHaveLength(1);
});

test("who looks at a tab is told nothing by another one", () => {
  const [seen, hidden] = [tab(), tab()];
  for (const world of [seen, hidden]) world.list(row("one"));
  visible.value = true;
  ask(seen, "a1");
  visible.value = false;
  ask(hidden, "a1");
  pass();
  expect(shown()).toEqual([]);
});

test("nothing is told where it is switched off, not allowed, or the page is looked at", () => {
  const world = tab();
  world.list(row("one"));
  notify.value = false;
  ask(world, "a1");
  notify.value = true;
  Note.permission = "denied";
  ask(world, "a2");
  Note.permission = "granted";
  visible.value = true;
  ask(world, "a3");
  pass();
  expect(shown()).toEqual([]);
});

test("the next turn of a session is told again", () => {
  const world = tab();
  world.list(row("one", { status: "running" }));
  for (const status of ["idle", "running", "idle"]) {
    world.change(row("one", { status }));
    pass();
  }
  expect(shown()).toHaveLength(2);
});

test("the title and the badge count what waits, and name what is open", () => {
  const world = tab();
  world.list(row("one"), row("two", { status: "waiting_for_input" }));
  expect(document.title).toBe("(1) Pilothouse");
  ask(world, "a1");
  goTo("#/session/one");
  expect(document.title).toBe("(2) Title of one – Pilothouse");
  expect(badges.at(-1)).toBe(2);
  world.change(row("two"));
  world.say({ type: "approval_resolved", approval: approval("a1", "one") });
  expect(document.title).toBe("Title of one – Pilothouse");
  expect(badges.at(-1)).toBe(0);
});
