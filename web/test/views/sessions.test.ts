// @vitest-environment jsdom
import { h } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { jump } from "../../src/app/jump";
import { choicesOf, filtered, marked, NO_FILTER } from "../../src/views/sessions/filter";
import { SessionList } from "../../src/views/sessions/list";
import { row, World } from "./sessions.world";

let world: World;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  localStorage.clear();
  location.hash = "";
  window.dispatchEvent(new Event("hashchange"));
  world = new World();
  world.show(h(SessionList, {}));
});
afterEach(() => {
  world.close();
  vi.useRealTimers();
});

const names = () => world.all(".session-name").map((one) => one.textContent);
const search = async (text: string) => {
  world.type("input[type=search]", text);
  act(() => void vi.advanceTimersByTime(250));
  await world.settle();
};

test("a list that was not told yet is a skeleton and never looks empty", () => {
  expect(world.find("[role=status]").textContent).toBe("Loading the sessions");
  expect(world.text).not.toContain("There is no session");
});

test("an empty list says what to do next", () => {
  world.list();
  expect(world.text).toContain("There is no session yet");
  expect(world.button("New session").getAttribute("href")).toBe("#/new");
  expect(world.text).toContain("pilothouse run");
});

test("who needs somebody comes first, then who works, then the last active", () => {
  world.list(
    row("old", { updated: "2025-01-01T00:00:00Z" }),
    row("recent"),
    row("works", { status: "running", updated: "2025-01-01T00:00:00Z" }),
    row("waits", { status: "waiting_for_approval", pendingApprovals: 2, updated: "2025-01-01T00:00:00Z" }),
  );
  expect(names()).toEqual(["Title of waits", "Title of works", "Title of recent", "Title of old"]);
  expect(world.all(".session-word").map((one) => one.textContent)).toEqual([
    "waiting for you2",
    "working",
    "idle",
    "idle",
  ]);
});

test("a session without a title is called by its directory", () => {
  world.list(row("one", { title: null }));
  expect(names()).toEqual(["shop"]);
});

test("the open session is marked for screen readers", () => {
  world.list(row("one"), row("two"));
  act(() => {
    location.hash = "#/session/two";
    window.dispatchEvent(new Event("hashchange"));
  });
  expect(world.all("[aria-current=page]").map((one) => one.getAttribute("href"))).toEqual(["#/session/two"]);
});

test("filters narrow the list, and one that leaves nothing can be taken away", async () => {
  world.list(row("one", { status: "running" }), row("two", { agent: "codex" }));
  await world.press("Working1");
  expect(names()).toEqual(["Title of one"]);
  act(() => {
    const agent = world.find<HTMLSelectElement>("select[aria-label=Agent]");
    agent.value = "codex";
    agent.dispatchEvent(new Event("change", { bubbles: true }));
  });
  expect(names()).toEqual([]);
  await world.press("Show all");
  expect(names()).toHaveLength(2);
});

test("a word is looked for in titles at once and in conversations after a pause", async () => {
  world.answer(/^GET search/, {
    hits: [{ sessionId: "two", seq: 7, position: 1, type: "m", snippet: "a <b>clock</b> test" }],
  });
  world.answer(/^GET sessions\?title/, { sessions: [row("far", { title: "clock far away" })], next: null });
  world.list(row("one", { title: "The clock" }), row("two"));
  world.type("input[type=search]", "clock");
  expect(names()).toEqual(["The clock"]);
  expect(world.text).toContain("Searching…");
  await search("clock");
  expect(names()).toEqual(["The clock", "clock far away"]);
  expect(world.all("mark").map((one) => one.textContent)).toEqual(["clock"]);
  expect(world.find(".session-snippet").textContent).toBe("a <b>clock</b> test");
  act(() => world.find(".session-snippet").click());
  expect(jump.value).toEqual({ id: "two", seq: 7 });
});

test("only the last of several searches is asked for and shown", async () => {
  world.answer(/^GET search/, ({ path }) => ({
    hits: [{ sessionId: "one", seq: 1, position: 1, type: "m", snippet: path }],
  }));
  world.answer(/^GET sessions\?title/, { sessions: [], next: null });
  world.list(row("one"));
  world.type("input[type=search]", "clo");
  await search("clock");
  expect(world.asked.filter((one) => one.path.startsWith("search")).map((one) => one.path)).toEqual([
    "search?q=clock&limit=40",
  ]);
});

test("a search that fails says so", async () => {
  world.refuse(/^GET search/, 503, "closing", "The hub is closing");
  world.answer(/^GET sessions\?title/, { sessions: [], next: null });
  world.list(row("one"));
  await search("clock");
  expect(world.text).toContain("The search failed: The hub is closing");
});

test("a session is renamed in its row, and Esc leaves it as it was", async () => {
  world.answer(/^PATCH/, {});
  world.list(row("one"));
  await world.press("Actions for Title of one");
  await world.press("Rename");
  world.type(".session-rename input", "Another");
  await world.key(".session-rename input", "Escape");
  expect(world.asked.filter((one) => one.method === "PATCH")).toEqual([]);
  await world.press("Actions for Title of one");
  await world.press("Rename");
  world.type(".session-rename input", "Another");
  await world.key(".session-rename input", "Enter", { isComposing: true });
  expect(world.asked.filter((one) => one.method === "PATCH")).toEqual([]);
  await world.key(".session-rename input", "Enter");
  expect(world.asked.at(-1)).toEqual({ method: "PATCH", path: "sessions/one", body: { title: "Another" } });
});

test("deleting asks first", async () => {
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close ??= function (this: HTMLDialogElement) {
    this.open = false;
  };
  world.answer(/^DELETE/, null);
  world.list(row("one"));
  await world.press("Actions for Title of one");
  await world.press("Delete…");
  expect(world.asked.some((one) => one.method === "DELETE")).toBe(false);
  await world.press("Delete");
  expect(world.asked.at(-1)).toMatchObject({ method: "DELETE", path: "sessions/one" });
  expect(document.querySelector("dialog")).toBeNull();
});

test("the menu has only what this device may do", async () => {
  world.close();
  world = new World(["read"]);
  world.show(h(SessionList, {}));
  world.list(row("one", { status: "running" }));
  await world.press("Actions for Title of one");
  expect(world.all("[role=menuitem]").map((one) => one.textContent)).toEqual(["Replay", "Copy id"]);
  expect(world.all('a[href="#/new"]')).toEqual([]);
});

test("a running turn is stopped by a command", async () => {
  world.list(row("one", { status: "running" }));
  await world.press("Actions for Title of one");
  await world.press("Stop");
  expect(world.sent.at(-1)).toMatchObject({ type: "command", sessionId: "one", command: { command: "cancel" } });
});

test("archived sessions are read when they are asked for, and come back", async () => {
  world.answer(/^GET sessions\?archived=true/, {
    sessions: [row("gone", { archived: "2026-01-01T00:00:00Z" })],
    next: null,
  });
  world.answer(/^PATCH/, {});
  world.list(row("one"));
  await world.press("Archived");
  expect(names()).toEqual(["Title of gone"]);
  await world.press("Actions for Title of gone");
  await world.press("Bring back");
  expect(world.asked.at(-1)).toEqual({ method: "PATCH", path: "sessions/gone", body: { archived: false } });
  expect(names()).toEqual([]);
});

test.each(["waiting_for_input", "running"])("one that is %s is archived only by who knows that", async (status) => {
  world.answer(/^PATCH/, {});
  world.list(row("one", { status }));
  await world.press("Actions for Title of one");
  await world.press("Archive");
  expect(world.asked.some((one) => one.method === "PATCH")).toBe(false);
  await world.press("Archive anyway");
  expect(world.asked.at(-1)).toEqual({ method: "PATCH", path: "sessions/one", body: { archived: true } });
  expect(document.querySelector("dialog")).toBeNull();
});

test("Enter opens the first that was found, and nothing says that there is none", async () => {
  world.answer(/^GET search/, {
    hits: [{ sessionId: "two", seq: 7, type: "m", snippet: "## Why\n\nThe **clock** is `late`: see [it](a.py) ```py" }],
  });
  world.answer(/^GET sessions\?title/, { sessions: [] });
  world.list(row("two"));
  await search("clock");
  expect(world.find(".session-snippet").textContent).toBe("Why The clock is late: see it");
  expect(world.text).not.toContain("No session is called so");
  await world.key("input[type=search]", "Enter");
  expect(jump.peek()).toEqual({ id: "two", seq: 7 });
});

test("arrows move through the list", async () => {
  world.list(row("one", { updated: "2026-01-02T00:00:00Z" }), row("two"));
  await world.key("input[type=search]", "ArrowDown");
  expect(document.activeElement?.getAttribute("href")).toBe("#/session/one");
  await world.key('a[href="#/session/one"]', "ArrowDown");
  expect(document.activeElement?.getAttribute("href")).toBe("#/session/two");
});

test("a hub that is away for long makes every word offline, until it is back", () => {
  world.list(row("one", { status: "running" }));
  world.lose();
  expect(world.find(".session-word").textContent).toBe("working");
  act(() => void vi.advanceTimersByTime(11_000));
  expect(world.find(".session-word").textContent).toBe("offline");
});

test("a whole page of sessions is listed, the one that was active last first", () => {
  const rows = Array.from({ length: 100 }, (_, at) => row(`s${at}`, { updated: new Date(at * 1000).toISOString() }));
  world.list(...rows);
  expect(names()).toEqual(rows.map(({ title }) => title).toReversed());
});

test("marks keep every letter of the text, whatever is searched for", () => {
  const text = "a+b (c) [d] a+b";
  for (const words of [["a+b"], ["(", "["], [], ["nothing"]]) {
    expect(
      marked(text, words)
        .map((one) => one.text)
        .join(""),
    ).toBe(text);
  }
  expect(marked(text, ["a+b"]).filter((one) => one.hit)).toHaveLength(2);
});

test("words are looked for in title, directory, agent and id, all of them", () => {
  const rows = [row("one", { title: "Fix the clock" }), row("two", { agent: "codex" })];
  const found = (text: string) => filtered(rows, { ...NO_FILTER, text }).map((one) => one.id);
  expect(found("CLOCK shop")).toEqual(["one"]);
  expect(found("codex")).toEqual(["two"]);
  expect(found("clock codex")).toEqual([]);
  expect(choicesOf(rows, "agent")).toEqual(["claude", "codex"]);
});
