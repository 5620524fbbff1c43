import { describe, expect, test } from "vitest";
import { LONGEST_WAIT, Recording } from "../../src/app/recording";
import { REPLAY_KEYS, ReplaySession } from "../../src/app/replay";
import type { Clock } from "../../src/link/ports";
import { Session } from "../../src/model/session";
import type { SessionEvent, Snapshot } from "../../src/model/wire.gen";
import { copy, goldens } from "../goldens";

/** Time that passes when it is told to. */
class Hand implements Clock {
  #now = 0;
  #calls: { at: number; call: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, call: () => void): () => void {
    const entry = { at: this.#now + milliseconds, call };
    this.#calls.push(entry);
    return () => {
      this.#calls = this.#calls.filter((one) => one !== entry);
    };
  }

  get waiting(): number {
    return this.#calls.length;
  }

  pass(milliseconds: number): void {
    const until = this.#now + milliseconds;
    for (;;) {
      const next = this.#calls.filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0];
      if (!next) break;
      this.#calls = this.#calls.filter((one) => one !== next);
      this.#now = next.at;
      next.call();
    }
    this.#now = until;
  }
}

function folded(events: readonly SessionEvent[]): Snapshot {
  const session = new Session();
  for (const event of copy([...events])) session.apply(event);
  return session.snapshot();
}

const replayed = (events: SessionEvent[], clock: Clock = new Hand()) => new ReplaySession(new Recording(events), clock);
const press = (replay: ReplaySession, keys: string): void => REPLAY_KEYS.find((one) => one.keys === keys)!.act(replay);
const shown = (replay: ReplaySession): Snapshot => replay.session.value!.snapshot();

/** The text that is there, one message to a line. */
const words = (replay: ReplaySession): string[] =>
  replay.items.value.map((item) =>
    item.type === "message" ? item.content.map((block) => (block.type === "text" ? block.text : "")).join("") : "",
  );

const moment = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();

/** Says one word at each of the moments, in seconds. */
function saying(...seconds: number[]): SessionEvent[] {
  return seconds.map((at, index) => ({
    type: "message:delta",
    messageId: "m",
    role: "assistant",
    delta: `${index + 1}`,
    seq: index + 1,
    sessionId: "s",
    timestamp: moment(at),
  }));
}

/** Every golden after the other, again and again, as one session. */
function long(count: number): SessionEvent[] {
  const one = goldens()
    .filter(({ name }) => !name.startsWith("odd"))
    .flatMap(({ events }) => events);
  const all: SessionEvent[] = [];
  for (let index = 0; index < count; index += 1) {
    all.push({ ...copy(one[index % one.length]!), seq: index + 1, sessionId: "s", timestamp: moment(index / 10) });
  }
  return all;
}

describe.each(goldens())("$name", ({ events }) => {
  test("anywhere it is what folding the events up to there gives", () => {
    const replay = replayed(copy(events));
    const places = [0, events.length, 1, Math.floor(events.length / 2), events.length - 1, 3, events.length];
    for (const count of places) {
      replay.goTo(count);
      expect(shown(replay)).toEqual(folded(events.slice(0, Math.max(0, count))));
    }
  });
});

test("going to and fro in a long session never shows anything else than the fold", () => {
  const events = long(3500);
  const before = JSON.stringify(events);
  const replay = replayed(events);
  for (const seq of [3500, 2500, 999, 1000, 1001, 0, 3000, 2000, 1999, 3499, 17]) {
    replay.seek(seq);
    expect(replay.position.value).toBe(seq);
    expect(shown(replay)).toEqual(folded(events.slice(0, seq)));
  }
  expect(JSON.stringify(events)).toBe(before);
});

test("forwards items stay the objects they are, and what changed is told", () => {
  const replay = replayed(saying(0, 1, 2));
  replay.seek(1);
  const item = replay.items.value[0]!;
  const version = replay.version(item);
  const told: (string | null)[] = [];
  replay.grown(item, (text) => told.push(text));
  replay.seek(3);
  expect(replay.items.value[0]).toBe(item);
  expect(version.value).toBe(1);
  expect(told).toEqual(["23"]);
  replay.seek(2);
  expect(replay.items.value[0]).not.toBe(item);
  expect(words(replay)).toEqual(["12"]);
});

test("backwards, what was the same then is the same object, and what is taken away is not kept in mind", () => {
  const { events } = goldens().find(({ name }) => name === "sub_agent.json")!;
  const replay = replayed(copy(events));
  const whole = [...replay.items.value];
  for (let count = events.length - 1; count >= 0; count -= 1) {
    replay.goTo(count);
    expect(shown(replay)).toEqual(folded(events.slice(0, count)));
  }
  replay.goTo(events.length);
  const half = Math.floor(events.length / 2);
  replay.goTo(half);
  expect(replay.items.value.length).toBeLessThan(whole.length);
  const before = [...replay.items.value];
  replay.goTo(half - 1);
  expect(replay.items.value[0]).toBe(before[0]);
  replay.goTo(events.length);
  expect(shown(replay)).toEqual(folded(events));
});

test("it begins where all of it can be seen, and plays from the beginning then", () => {
  const clock = new Hand();
  const replay = replayed(saying(0, 1, 2), clock);
  expect(words(replay)).toEqual(["123"]);
  replay.play();
  expect(words(replay)).toEqual([]);
  clock.pass(500);
  expect(words(replay)).toEqual(["1"]);
  clock.pass(700);
  expect(words(replay)).toEqual(["12"]);
  clock.pass(1000);
  expect(words(replay)).toEqual(["123"]);
  expect(replay.playing.value).toBe(false);
  expect(clock.waiting).toBe(0);
});

test.each([1, 2, 5, 10, 50] as const)("at %i× the clock goes so many times as fast", (speed) => {
  const clock = new Hand();
  const replay = replayed(saying(...Array.from({ length: 101 }, (_, second) => second)), clock);
  replay.play(speed);
  clock.pass(10_500 / speed);
  expect(replay.count.value).toBeGreaterThanOrEqual(10);
  expect(replay.count.value).toBeLessThanOrEqual(11);
  clock.pass(90_000 / speed + 100);
  expect(replay.atEnd).toBe(true);
});

test("a long wait is shortened, and how long it was is known while it lasts", () => {
  const clock = new Hand();
  const replay = replayed(saying(0, 600, 602, 604.5), clock);
  expect([...replay.recording.waits]).toEqual([
    [2, 600_000],
    [4, 2500],
  ]);
  expect(replay.recording.duration).toBe(3 * LONGEST_WAIT);
  replay.play();
  clock.pass(LONGEST_WAIT - 100);
  expect(replay.wait).toBe(600_000);
  clock.pass(200);
  expect([words(replay), replay.wait]).toEqual([["12"], 0]);
  expect(replay.timestamp).toBe(moment(600));
});

test("a pause keeps the moment, and another speed counts from where it is", () => {
  const clock = new Hand();
  const replay = replayed(saying(0, 1, 2, 3, 4, 5), clock);
  replay.play();
  clock.pass(1500);
  replay.pause();
  clock.pass(10_000);
  expect(words(replay)).toEqual(["12"]);
  replay.play();
  clock.pass(600);
  expect(words(replay)).toEqual(["123"]);
  replay.pace(5);
  clock.pass(300);
  expect(words(replay)).toEqual(["1234"]);
  replay.close();
  expect(clock.waiting).toBe(0);
});

test("who seeks while it plays goes on playing from there", () => {
  const clock = new Hand();
  const replay = replayed(saying(0, 1, 2, 3, 4, 5), clock);
  replay.play();
  clock.pass(4500);
  replay.seek(2);
  expect(replay.playing.value).toBe(true);
  clock.pass(1100);
  expect(words(replay)).toEqual(["123"]);
  replay.goToTime(0);
  expect(words(replay)).toEqual([]);
  replay.goToTime(Infinity);
  expect(words(replay)).toEqual(["123456"]);
});

test("events of one moment come one after another, and a time that cannot be read is no wait", () => {
  const events = saying(5, 5, 5, 1, 1);
  events[4]!.timestamp = "yesterday";
  const { recording } = replayed(events);
  expect([1, 2, 3, 4, 5].map((count) => recording.timeOf(count))).toEqual([0, 1, 2, 3, 4]);
  expect([1, 2, 3, 4, 5].map((count) => recording.countAt(recording.timeOf(count)))).toEqual([1, 2, 3, 4, 5]);
});

test("part of a session is played by its own numbers", () => {
  const events = saying(0, 1, 2, 3).slice(2);
  const replay = replayed(events);
  replay.seek(3);
  expect([replay.count.value, replay.position.value, words(replay)]).toEqual([1, 3, ["3"]]);
  replay.seek(1);
  expect([replay.count.value, replay.position.value]).toEqual([0, 0]);
});

test("an empty recording can be handled like any", () => {
  const replay = replayed([]);
  for (const { act } of REPLAY_KEYS) act(replay);
  expect(replay.playing.value).toBe(false);
  expect(replay.items.value).toEqual([]);
});

test("prompts, approvals, edits and errors are marked, calls that were cancelled are not", () => {
  const marks = (name: string) =>
    new Recording(goldens().find((one) => one.name === name)!.events).marks.map(
      ({ kind, label }) => `${kind} ${label}`,
    );
  expect(marks("tour.json")[0]).toBe("prompt tour");
  expect(marks("tour.json")).toContain("error Run: python3 -B -m unittest");
  expect(marks("tour.json")).toContain("edit pilothouse-demo/cart.py");
  expect(marks("permission.json").filter((mark) => mark.startsWith("approval"))).not.toEqual([]);
  expect(marks("edit.json").filter((mark) => mark.startsWith("edit"))).not.toEqual([]);
  expect(marks("error.json").filter((mark) => mark.startsWith("error"))).not.toEqual([]);
  expect(marks("cancel.json").filter((mark) => mark.startsWith("error"))).toEqual([]);
});

test("a mark is where what it tells of has just happened", () => {
  const { events } = goldens().find(({ name }) => name === "permission.json")!;
  const replay = replayed(copy(events));
  replay.goTo(0);
  replay.leap("approval", 1);
  expect(replay.session.value!.pendingApprovals).toHaveLength(1);
  replay.step(-1);
  expect(replay.session.value!.pendingApprovals).toHaveLength(0);
});

test("a step is to the next thing that happened, over the pieces of a text", () => {
  const { events } = goldens().find(({ name }) => name === "tour.json")!;
  const replay = replayed(copy(events));
  replay.goTo(0);
  let steps = 0;
  while (!replay.atEnd) {
    replay.step(1);
    steps += 1;
    if (!replay.atEnd) expect(events[replay.count.value - 1]!.type).not.toMatch(/delta|status_changed/);
  }
  expect(steps).toBeLessThan(events.length);
  while (replay.count.value > 0) replay.step(-1);
  expect(replay.items.value).toEqual([]);
});

test("keys play, step, leap and set the speed", () => {
  const { events } = goldens().find(({ name }) => name === "tour.json")!;
  const clock = new Hand();
  const replay = replayed(copy(events), clock);
  press(replay, "Home");
  expect(replay.count.value).toBe(0);
  press(replay, "shift+ArrowRight");
  expect(words(replay)).toEqual(["tour"]);
  press(replay, "shift+ArrowLeft");
  expect(replay.count.value).toBe(0);
  press(replay, "End");
  expect(replay.atEnd).toBe(true);
  press(replay, "5");
  expect([replay.speed.value, replay.playing.value]).toEqual([50, false]);
  press(replay, " ");
  expect(replay.playing.value).toBe(true);
  press(replay, " ");
  expect(replay.playing.value).toBe(false);
});

test("what an agent's JSON calls itself stays what it is", () => {
  const event = JSON.parse(
    '{"type":"custom","namespace":"x","eventName":"y","data":{"__proto__":{"a":[1]},"b":{"__proto__":2}},"seq":1,"sessionId":"s","timestamp":""}',
  ) as SessionEvent;
  const replay = replayed([event]);
  expect(JSON.stringify(shown(replay))).toContain('{"__proto__":{"a":[1]},"b":{"__proto__":2}}');
});

test("twenty thousand events are gone through to and fro", () => {
  const replay = replayed(long(20_000));
  const took: number[] = [];
  for (const seq of [19_999, 1, 20_000, 10_999, 500, 15_500]) {
    const before = performance.now();
    replay.seek(seq);
    took.push(performance.now() - before);
    expect(replay.session.value!.fields.seq).toBe(seq);
  }
  console.log(`20,000 events: seeks took ${took.map((each) => each.toFixed(0)).join(", ")} ms`);
});
