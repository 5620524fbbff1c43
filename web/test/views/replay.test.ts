// @vitest-environment jsdom
import { h, render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Recording } from "../../src/app/recording";
import { ReplaySession } from "../../src/app/replay";
import { listenForKeys } from "../../src/app/shortcuts";
import type { SessionEvent } from "../../src/model/wire.gen";
import { clock } from "../../src/ui/time";
import { drawn } from "../../src/views/replay/line";
import { Player } from "../../src/views/replay/player";
import { goldens } from "../goldens";

const CLOCK = { now: () => 0, after: () => () => {} };
let place: HTMLElement;
let deaf: () => void;

beforeEach(() => {
  place = document.body.appendChild(document.createElement("div"));
  deaf = listenForKeys();
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
});

afterEach(() => {
  void act(() => render(null, place));
  place.remove();
  deaf();
});

function played(events: SessionEvent[], title?: string): ReplaySession {
  const replay = new ReplaySession(new Recording(events), CLOCK);
  void act(() => render(h(Player, { replay, title }), place));
  return replay;
}

const golden = (name: string): SessionEvent[] => goldens().find((one) => one.name === `${name}.json`)!.events;
const press = (key: string, target: Element = document.body, more: KeyboardEventInit = {}) =>
  act(() => void target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more })));
const find = <Found extends Element = HTMLElement>(selector: string): Found => place.querySelector<Found>(selector)!;
const labelled = (label: string) => find<HTMLButtonElement>(`[aria-label="${label}"]`);

test("what is shown is the session as it was at that moment", async () => {
  const replay = played(golden("tour"), "A tour");
  expect(find(".replay-title").textContent).toBe("A tour");
  await vi.waitFor(() => expect(place.textContent).toContain("What happened"));
  await act(() => replay.goTo(4));
  await vi.waitFor(() => expect(place.textContent).not.toContain("What happened"));
  expect(find(".transcript").textContent).toContain("tour");
  expect(find(".replay-facts").textContent).toContain(`Event 4 of ${replay.recording.length}`);
});

test("what waited for an answer is said in a line, and cannot be answered", async () => {
  const replay = played(golden("permission"));
  expect(place.querySelector(".replay-asked")).toBeNull();
  await act(() => replay.goTo(replay.recording.marks.find(({ kind }) => kind === "approval")!.count));
  expect(find(".replay-asked").textContent).toMatch(/risk/);
  expect(find(".replay-asked").querySelector("button")).toBeNull();
  expect(place.textContent).not.toContain("your decision");
  expect(place.textContent).toContain("Waiting for a decision");
});

test("the time line can be dragged, and says where it stands", async () => {
  const replay = played(golden("tour"));
  const line = find<HTMLInputElement>("input[type=range]");
  expect(line.valueAsNumber).toBe(replay.recording.duration);
  const half = Math.floor(replay.recording.duration / 2);
  line.value = String(half);
  await act(() => void line.dispatchEvent(new Event("input", { bubbles: true })));
  expect(replay.count.value).toBe(replay.recording.countAt(half));
  expect(line.getAttribute("aria-valuetext")).toContain(`event ${replay.count.value} of ${replay.recording.length}`);
});

test("buttons play, pause and go from prompt to prompt", async () => {
  const replay = played(golden("tour"));
  await act(() => labelled("Play from the beginning").click());
  expect([replay.playing.value, replay.count.value]).toEqual([true, 0]);
  await act(() => labelled("Pause").click());
  expect(replay.playing.value).toBe(false);
  await act(() => labelled("Next prompt").click());
  expect(replay.recording.events[replay.count.value - 1]).toMatchObject({ type: "message:complete", role: "user" });
  const pace = find<HTMLSelectElement>("select");
  pace.value = "10";
  await act(() => void pace.dispatchEvent(new Event("change", { bubbles: true })));
  expect(replay.speed.value).toBe(10);
});

test("keys act everywhere but where they belong to something else", async () => {
  const replay = played(golden("tour"));
  await press("Home");
  expect(replay.count.value).toBe(0);
  await press("ArrowRight", find("input[type=range]"));
  expect(replay.count.value).toBeGreaterThan(0);
  await press("Home", find("select"));
  expect(replay.count.value).toBeGreaterThan(0);
  labelled("Next prompt").focus();
  await press(" ", labelled("Next prompt"));
  expect(replay.playing.value).toBe(false);
  labelled("Next prompt").blur();
  await press(" ");
  expect(replay.playing.value).toBe(true);
});

test("what happened when is a list that leads there", async () => {
  const replay = played(golden("tour"));
  await act(() => labelled("What happened when").click());
  const entries = [...place.querySelectorAll<HTMLButtonElement>(".replay-contents button")];
  expect(entries).toHaveLength(replay.recording.marks.length);
  expect(entries[0]!.textContent).toContain("Prompt: tour");
  await act(() => entries[0]!.click());
  expect(replay.count.value).toBe(replay.recording.marks[0]!.count);
  expect(place.querySelector("dialog")).toBeNull();
});

test("long waits are said to be shortened", () => {
  const events = golden("tour");
  for (const event of events.slice(10)) {
    event.timestamp = new Date(Date.parse(event.timestamp) + 600_000).toISOString();
  }
  played(events);
  expect(find(".replay-facts").textContent).toContain("1 wait of more than 2 s (10 min 0 s in all) shortened to 2 s");
});

test("many marks in one place are one", () => {
  const change = (seq: number): SessionEvent => ({
    type: "file:change",
    path: `/${seq}`,
    changeType: "modified",
    seq,
    sessionId: "s",
    timestamp: "",
  });
  const marks = drawn(new Recording(Array.from({ length: 5000 }, (_, index) => change(index + 1))));
  expect(marks.length).toBeGreaterThan(100);
  expect(marks.length).toBeLessThanOrEqual(401);
});

test("times are shown as players do", () => {
  expect([0, 7_900, 750_000, 3_723_000].map(clock)).toEqual(["0:00", "0:07", "12:30", "1:02:03"]);
});

test("the head says where it was in a few words, and has no marks of code in them", () => {
  const events = golden("tour").map((event) =>
    event.type === "session:started" ? { ...event, workingDirectory: "/home/me/work/deep/app" } : event,
  );
  played(events, "Run `ls` and ``a`b``");
  expect(find(".replay-title").textContent).toBe("Run ls and a`b");
  expect(find(".replay-beside .cut").textContent).toContain("…/deep/app");
  expect(find(".replay-beside .cut").textContent).not.toContain("/home/me");
  expect(find(".replay-beside .cut").title).toBe("/home/me/work/deep/app");
});

test("what waited for a decision says so once", async () => {
  const replay = played(golden("permission"));
  await act(() => replay.goTo(replay.recording.marks.find(({ kind }) => kind === "approval")!.count));
  await vi.waitFor(() => expect(find(".transcript").textContent).toContain("Waiting for a decision"));
  expect(find(".transcript").textContent.split("Waiting for a decision")).toHaveLength(2);
});
