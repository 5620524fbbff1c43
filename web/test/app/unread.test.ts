// @vitest-environment jsdom
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isUnread, markSeen, visible, watchSeen } from "../../src/app/unread";
import { row, World } from "../views/sessions.world";

const LATER = "2999-01-01T00:00:00Z";
let world: World;
let stop: () => void;
beforeEach(() => {
  world = new World();
  stop = watchSeen(world.hub);
});
afterEach(() => {
  stop();
  vi.restoreAllMocks();
  act(() => void (visible.value = true));
});

const goTo = (hash: string) =>
  act(() => {
    location.hash = hash;
    window.dispatchEvent(new Event("hashchange"));
  });

test("what was seen is read until something comes", () => {
  markSeen("a", 5);
  expect(isUnread(row("a", { seq: 5 }))).toBe(false);
  expect(isUnread(row("a", { seq: 6 }))).toBe(true);
});

test("nobody unsees: an older seq changes nothing", () => {
  markSeen("b", 5);
  markSeen("b", 3);
  expect(isUnread(row("b", { seq: 5 }))).toBe(false);
});

test("a session that was never opened is unread only if it was active since this browser came", () => {
  expect(isUnread(row("old", { updated: "2001-01-01T00:00:00Z" }))).toBe(false);
  expect(isUnread(row("new", { updated: LATER }))).toBe(true);
  expect(isUnread(row("empty", { updated: LATER, seq: 0 }))).toBe(false);
});

test("the session that is open and visible is seen as it goes on", () => {
  goTo("#/session/c");
  world.list(row("c", { seq: 7, updated: LATER }));
  goTo("#/");
  expect(isUnread(row("c", { seq: 7, updated: LATER }))).toBe(false);
  expect(isUnread(row("c", { seq: 8, updated: LATER }))).toBe(true);
});

test("an open session in a hidden page is not seen", () => {
  goTo("#/session/d");
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  act(() => void document.dispatchEvent(new Event("visibilitychange")));
  world.list(row("d", { seq: 7, updated: LATER }));
  expect(isUnread(row("d", { seq: 7, updated: LATER }))).toBe(true);
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("visible");
  act(() => void document.dispatchEvent(new Event("visibilitychange")));
  expect(isUnread(row("d", { seq: 7, updated: LATER }))).toBe(false);
});

test("what another tab has seen is seen here", () => {
  expect(isUnread(row("e", { seq: 3, updated: LATER }))).toBe(true);
  localStorage.setItem("pilothouse:seen", JSON.stringify({ e: 3 }));
  window.dispatchEvent(new StorageEvent("storage", { key: "pilothouse:seen" }));
  expect(isUnread(row("e", { seq: 3, updated: LATER }))).toBe(false);
});

test("only so many sessions are remembered", () => {
  for (let at = 0; at < 600; at++) markSeen(`many${at}`, 1);
  const kept = JSON.parse(localStorage.getItem("pilothouse:seen") ?? "{}") as Record<string, number>;
  expect(Object.keys(kept)).toHaveLength(500);
  expect(kept["many599"]).toBe(1);
});
