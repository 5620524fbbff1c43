/**
 * A recording that is played: the session as it was at a moment, and the moment moves by itself or by hand.
 *
 * As it is played events are applied, so that items stay the objects they are; backwards, or far ahead, the session is
 * another one, folded from the nearest kept state, with the items that were the same then. Time comes from the clock
 * it is given, never from the page.
 */
import { batch, computed, signal } from "@preact/signals";
import type { Cancel, Clock } from "../link/ports";
import type { SessionEvent } from "../model/wire.gen";
import type { Mark, MarkKind, Recording } from "./recording";
import { ShownSession } from "./shown";

export const SPEEDS = [1, 2, 5, 10, 50] as const;
export type Speed = (typeof SPEEDS)[number];

/** Milliseconds between two looks at the clock. */
const FRAME = 33;
/** So many events ahead a kept state is nearer than the moment. */
const FAR = 1000;
/** Pieces of something longer: who goes step by step wants the next thing, not the next word. */
const PIECES: ReadonlySet<SessionEvent["type"]> = new Set([
  "message:delta",
  "thinking:delta",
  "tool:args_delta",
  "progress:update",
  "session:status_changed",
  "resource:token_usage",
  "resource:cost",
  "resource:context_window",
]);

export class ReplaySession extends ShownSession {
  readonly recording: Recording;
  /** How many events have happened. */
  readonly count = signal(0);
  /** The moment, in milliseconds of playing. */
  readonly time = signal(0);
  readonly playing = signal(false);
  readonly speed = signal<Speed>(1);
  /** The number of the last event that has happened. */
  readonly position = computed(() => this.recording.seqOf(this.count.value));
  /** When that was: the time of the last event, and what has been played since. */
  readonly past = computed(() => {
    const then = Date.parse(this.timestamp);
    return (then || 0) + this.time.value - this.recording.timeOf(this.count.value);
  });
  readonly #clock: Clock;
  #stop: Cancel | null = null;

  /** It begins at its end, where all of it can be seen. */
  constructor(recording: Recording, clock: Clock) {
    super();
    this.recording = recording;
    this.#clock = clock;
    this.#go(recording.length, recording.duration);
  }

  get atEnd(): boolean {
    return this.count.value >= this.recording.length;
  }

  /** The timestamp of the moment, "" before the first event. */
  get timestamp(): string {
    return this.recording.events[this.count.value - 1]?.timestamp ?? "";
  }

  /** How long the wait lasted that is going on, if it is shortened; else 0. */
  get wait(): number {
    return this.recording.waits.get(this.count.value + 1) ?? 0;
  }

  /** From the moment on, or from the beginning when all has been played. */
  play(speed: Speed = this.speed.value): void {
    this.speed.value = speed;
    if (!this.recording.length) return;
    if (this.atEnd) this.#go(0, 0);
    this.playing.value = true;
    this.#follow();
  }

  pause(): void {
    this.#stop?.();
    this.#stop = null;
    this.playing.value = false;
  }

  toggle(): void {
    if (this.playing.value) this.pause();
    else this.play();
  }

  /** Another speed, whether it plays or not. */
  pace(speed: Speed): void {
    this.speed.value = speed;
    if (this.playing.value) this.#follow();
  }

  /** To the moment right after the event of that number. */
  seek(seq: number): void {
    this.goTo(this.recording.countOf(seq));
  }

  /** To the moment when so many events have happened. */
  goTo(count: number): void {
    const within = Math.max(0, Math.min(count, this.recording.length));
    this.#go(within, this.recording.timeOf(within));
    if (this.playing.value) this.#follow();
  }

  /** To a moment of playing. */
  goToTime(time: number): void {
    const within = Math.max(0, Math.min(time, this.recording.duration));
    this.#go(within > 0 ? this.recording.countAt(within) : 0, within);
    if (this.playing.value) this.#follow();
  }

  /** To the next thing that happened, or back to the one before. */
  step(way: 1 | -1): void {
    const { events } = this.recording;
    let count = this.count.value + way;
    while (count > 0 && count < events.length && PIECES.has(events[count - 1]!.type)) count += way;
    this.goTo(count);
  }

  /** The next mark of a kind, or the one before; null where there is none. */
  mark(kind: MarkKind, way: 1 | -1): Mark | null {
    const marks = this.recording.marks.filter((mark) => mark.kind === kind);
    const now = this.count.value;
    return (way > 0 ? marks.find((mark) => mark.count > now) : marks.findLast((mark) => mark.count < now)) ?? null;
  }

  /** To that mark; where there is none, to the end of that way. */
  leap(kind: MarkKind, way: 1 | -1): void {
    this.goTo(this.mark(kind, way)?.count ?? (way > 0 ? this.recording.length : 0));
  }

  close(): void {
    this.pause();
  }

  /** Let the moment move as the clock does, from here and now on. */
  #follow(): void {
    this.#stop?.();
    const [from, began, speed] = [this.time.value, this.#clock.now(), this.speed.value];
    const look = () => {
      const time = Math.min(from + (this.#clock.now() - began) * speed, this.recording.duration);
      this.#go(this.recording.countAt(time), time);
      if (this.atEnd) this.pause();
      else this.#stop = this.#clock.after(FRAME, look);
    };
    this.#stop = this.#clock.after(FRAME, look);
  }

  #go(count: number, time: number): void {
    let session = this.session.value;
    const ahead = count - this.count.value;
    if (!session || ahead < 0 || ahead > FAR) session = this.recording.at(count, this.items.value);
    else this.recording.apply(session, this.count.value, count);
    batch(() => {
      this.count.value = count;
      this.time.value = time;
      this.show(session);
    });
  }
}

// -- keys -------------------------------------------------------------------------------------------------------------

/** A key, as shortcuts are written, and what it does to what is played. */
export interface ReplayKey {
  keys: string;
  label: string;
  act(replay: ReplaySession): void;
}

export const REPLAY_KEYS: readonly ReplayKey[] = [
  { keys: " ", label: "Play or pause", act: (replay) => replay.toggle() },
  { keys: "ArrowRight", label: "Next thing that happened", act: (replay) => replay.step(1) },
  { keys: "ArrowLeft", label: "What happened before", act: (replay) => replay.step(-1) },
  { keys: "shift+ArrowRight", label: "Next prompt", act: (replay) => replay.leap("prompt", 1) },
  { keys: "shift+ArrowLeft", label: "Previous prompt", act: (replay) => replay.leap("prompt", -1) },
  { keys: "Home", label: "To the beginning", act: (replay) => replay.goTo(0) },
  { keys: "End", label: "To the end", act: (replay) => replay.goTo(replay.recording.length) },
  ...SPEEDS.map((speed, index) => ({
    keys: `${index + 1}`,
    label: `Play at ${speed}×`,
    act: (replay: ReplaySession) => replay.pace(speed),
  })),
];
