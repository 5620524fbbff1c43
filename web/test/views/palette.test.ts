// @vitest-environment jsdom
import { h } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test } from "vitest";
import { notify, theme } from "../../src/app/settings";
import { panel, type Shortcut } from "../../src/app/shortcuts";
import { nextWaiting } from "../../src/views/palette/entries";
import { match, pieces } from "../../src/views/palette/fuzzy";
import { Help, tableOf } from "../../src/views/palette/help";
import { Palette } from "../../src/views/palette/palette";
import { Settings } from "../../src/views/palette/settings";
import { row, World } from "./sessions.world";

let world: World;
let closed = 0;
const close = () => void (closed += 1);
beforeEach(() => {
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close ??= function (this: HTMLDialogElement) {
    this.open = false;
  };
  closed = 0;
  panel.value = null;
  act(() => {
    location.hash = "";
    window.dispatchEvent(new Event("hashchange"));
  });
  world = new World();
  world.list(
    row("one", { title: "Fix the clock", status: "waiting_for_input" }),
    row("two", { title: "Dark mode", status: "running", cwd: "/srv/blog" }),
  );
});
afterEach(() => world.close());

const texts = () => world.all(".palette-text").map((one) => one.textContent);
const at = () => world.all("[role=option][aria-selected=true] .palette-text").map((one) => one.textContent);

test("the palette begins with sessions, the one that waits first, then what can be done", () => {
  world.show(h(Palette, { close }));
  expect(texts().slice(0, 3)).toEqual(["Fix the clock", "Dark mode", "Jump to the next waiting session"]);
  expect(at()).toEqual(["Fix the clock"]);
});

test("a few letters find a session, and Enter goes there", async () => {
  world.show(h(Palette, { close }));
  world.type("[role=combobox]", "fxclk");
  expect(at()).toEqual(["Fix the clock"]);
  await world.key("[role=combobox]", "Enter");
  expect(closed).toBe(1);
  expect(location.hash).toBe("#/session/one");
});

test("arrows move, around the ends, and the field names the active option", async () => {
  world.show(h(Palette, { close }));
  await world.key("[role=combobox]", "ArrowDown");
  expect(world.find("[role=combobox]").getAttribute("aria-activedescendant")).toBe("palette-1");
  await world.key("[role=combobox]", "ArrowUp");
  await world.key("[role=combobox]", "ArrowUp");
  expect(at()).toEqual([texts().at(-1)]);
});

test("Enter that ends the composition of a character chooses nothing", async () => {
  world.show(h(Palette, { close }));
  await world.key("[role=combobox]", "Enter", { isComposing: true });
  expect(closed).toBe(0);
});

test("actions of the open session are offered, those that make sense", async () => {
  act(() => {
    location.hash = "#/session/two";
    window.dispatchEvent(new Event("hashchange"));
  });
  world.show(h(Palette, { close }));
  world.type("[role=combobox]", "this");
  expect(texts().toSorted()).toEqual([
    "Archive this session",
    "Copy the id of this session",
    "Found on this machine",
    "Rename this session",
    "Replay this session",
    "Stop this turn",
  ]);
  world.type("[role=combobox]", "stop");
  await world.key("[role=combobox]", "Enter");
  expect(world.sent.at(-1)).toMatchObject({ sessionId: "two", command: { command: "cancel" } });
});

test("the theme is changed by the palette", async () => {
  world.show(h(Palette, { close }));
  world.type("[role=combobox]", "theme dark");
  await world.key("[role=combobox]", "Enter");
  expect(theme.value).toBe("dark");
  theme.value = "system";
});

test("directories are found by their path", () => {
  world.show(h(Palette, { close }));
  world.type("[role=combobox]", "srv/blog");
  expect(texts()).toContain("New session in blog");
});

test("a device that may only watch is offered nothing that it may not do", () => {
  world.close();
  world = new World(["read"]);
  world.list(row("one"));
  world.show(h(Palette, { close }));
  world.type("[role=combobox]", "session");
  expect(texts().some((one) => one?.startsWith("New session"))).toBe(false);
});

test("where nothing fits, it says so", async () => {
  world.show(h(Palette, { close }));
  world.type("[role=combobox]", "qqqq");
  expect(world.all("[role=option]")).toEqual([]);
  await world.key("[role=combobox]", "Enter");
  expect(closed).toBe(0);
});

test("the next waiting session comes after the open one, and around", () => {
  const rows = [row("a", { status: "waiting_for_input" }), row("b", { status: "waiting_for_approval" }), row("c")];
  expect([nextWaiting(rows, null)?.id, nextWaiting(rows, "a")?.id, nextWaiting(rows, "b")?.id]).toEqual([
    "a",
    "b",
    "a",
  ]);
  expect(nextWaiting([row("c")], null)).toBeUndefined();
});

test("beginnings of words and letters in a row fit best", () => {
  const best = (wanted: string, ...all: string[]) =>
    all
      .map((text) => ({ text, fit: match(wanted, text) }))
      .filter((one) => one.fit)
      .sort((one, other) => (other.fit?.score ?? 0) - (one.fit?.score ?? 0))[0]?.text;
  expect(best("ns", "Sessions", "New session")).toBe("New session");
  expect(best("dark", "d-a-r-k", "Theme: dark")).toBe("Theme: dark");
  expect(match("xyz", "abc")).toBeNull();
  expect(match("", "abc")?.at).toEqual([]);
});

test("pieces keep every letter", () => {
  expect(pieces("Fix the clock", [0, 1, 4])).toEqual([
    { text: "Fi", hit: true },
    { text: "x ", hit: false },
    { text: "t", hit: true },
    { text: "he clock", hit: false },
  ]);
});

test("the help lists what is registered, each once, in the order of the groups", () => {
  const key = (keys: string, group: Shortcut["group"], label = keys): Shortcut => ({
    keys,
    group,
    label,
    run: () => {},
  });
  const table = tableOf([key("k", "Sessions"), key("j", "Sessions"), key("k", "Sessions"), key("?", "Everywhere")]);
  expect(table[0]).toMatchObject({ group: "Everywhere", lines: [{ keys: "?" }] });
  expect(table[1]?.lines.slice(0, 2).map((one) => one.keys)).toEqual(["k", "j"]);
  world.show(h(Help, { close }));
  expect(world.all("caption").map((one) => one.textContent)).toContain("Composer");
});

test("settings change the theme, and say when notifications are not allowed", async () => {
  world.answer(/^GET healthz/, { status: "ok", version: "1.2.3" });
  Object.assign(globalThis, { Notification: { permission: "default", requestPermission: async () => "denied" } });
  world.show(h(Settings, { close }));
  await world.settle();
  expect(world.text).toContain("Pilothouse 1.2.3");
  act(() => world.all("[name=theme]")[1]?.click());
  expect(theme.value).toBe("light");
  act(() => world.find("[role=switch]").click());
  await world.settle();
  expect(notify.value).toBe(false);
  expect(world.text).toContain("This browser forbids them");
  Reflect.deleteProperty(globalThis, "Notification");
  theme.value = "system";
});
