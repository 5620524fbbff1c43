import { expect, test } from "vitest";
import { Api } from "../../src/app/api";
import { Reading } from "../../src/app/reading";
import type { Answer } from "../../src/link/ports";
import type { Json, SessionEvent } from "../../src/model/wire.gen";
import { goldens } from "../goldens";

const CLOCK = { now: () => 0, after: () => () => {} };

/** A hub with the events of a golden, which answers with so many at once, or as it is told. */
function hub(size: number, answers: (asked: string, give: () => Answer) => Answer = (_, give) => give()) {
  const { events, snapshot } = goldens().find(({ name }) => name === "tour.json")!;
  const asked: string[] = [];
  const api = new Api((path) => {
    asked.push(path);
    const after = Number(new URL(path, "http://hub").searchParams.get("after"));
    const page = events.filter(({ seq }) => seq > after).slice(0, size);
    const give = (): Answer => ({ status: 200, body: pageOf(page, after) });
    return Promise.resolve(answers(path, give));
  });
  return { api, asked, events, snapshot };
}

const pageOf = (events: SessionEvent[], after: number): Json =>
  ({ events, seq: events.at(-1)?.seq ?? after }) as unknown as Json;

test("pages are read until nothing is left, and then it can be played", async () => {
  const { api, asked, snapshot } = hub(50);
  const reading = new Reading("a/b", api, CLOCK);
  await reading.go();
  expect(asked.every((path) => path.startsWith("sessions/a%2Fb/events?"))).toBe(true);
  expect(reading.read.value).toBe(snapshot.seq);
  expect(reading.replay.value!.session.value!.snapshot()).toEqual(snapshot);
});

test("of a session that goes on, no more is read than was there", async () => {
  const { api, asked } = hub(50);
  const reading = new Reading("s", api, CLOCK);
  await reading.go(60);
  expect(asked).toHaveLength(2);
  expect(reading.replay.value!.recording.length).toBe(100);
});

test("what failed is said, and goes on where it stopped", async () => {
  let broken = true;
  const error = { error: { code: "busy", message: "Too much at once", recoverable: true } };
  const { api, asked, snapshot } = hub(50, (path, give) =>
    broken && path.includes("after=50") ? { status: 429, body: error } : give(),
  );
  const reading = new Reading("s", api, CLOCK);
  await reading.go();
  expect([reading.failed.value, reading.read.value, reading.replay.value]).toEqual(["Too much at once", 50, null]);
  broken = false;
  await reading.go();
  expect(reading.failed.value).toBeNull();
  expect(reading.replay.value!.session.value!.snapshot()).toEqual(snapshot);
  expect(asked.filter((path) => path.includes("after=0"))).toHaveLength(1);
});

test("who left is not read for", async () => {
  const { api, asked } = hub(50);
  const reading = new Reading("s", api, CLOCK);
  const read = reading.go();
  reading.close();
  await read;
  expect(asked).toHaveLength(1);
  expect(reading.replay.value).toBeNull();
});
