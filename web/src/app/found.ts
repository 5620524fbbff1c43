/**
 * Sessions that were begun elsewhere on the hub's machine, in a terminal or an editor: what there is, and what somebody
 * wants to do with one. They are looked for only while somebody looks.
 */
import { effect, type Signal, signal, untracked } from "@preact/signals";
import type { Cancel } from "../link/ports";
import { isObject, textOf } from "../model/json";
import { path, Refused } from "./api";
import { type Hub, words } from "./hub";
import type { SessionRow } from "./rows";
import { kept } from "./stored";

export interface FoundSession {
  id: string;
  agent: string;
  projectPath: string;
  projectName: string;
  lastActivity: string;
  lastMessage?: string | null;
  sessionName?: string | null;
  status?: "running" | "waiting" | "idle" | null;
  model?: string | null;
  /** The process that has it now. */
  pid?: number | null;
  /** The hub's own session of it. */
  hubSessionId?: string | null;
}

export interface Problem {
  path: string;
  message: string;
}

export interface Found {
  sessions: readonly FoundSession[];
  problems: readonly Problem[];
}

/** Whether the list of them is unfolded. */
export const unfolded = kept<boolean>("found", false);

export const nameOfFound = (found: FoundSession): string =>
  found.sessionName || found.lastMessage || found.projectName || found.id;

const readFound = (hub: Hub, refresh: boolean): Promise<Found> =>
  hub.api.get<Found>(refresh ? "discovered?refresh=true" : "discovered");

/** The one that one of the hub's own sessions watches. */
export async function foundOf(hub: Hub, sessionId: string): Promise<FoundSession | null> {
  return watchedIn(await readFound(hub, false), sessionId);
}

export const watchedIn = ({ sessions }: Found, sessionId: string): FoundSession | null =>
  sessions.find((one) => one.hubSessionId === sessionId) ?? null;

/** Milliseconds between two looks, however much happens elsewhere. */
const APART = 2000;

/** What there is, for as long as somebody looks: read at first, and when the hub says that it changed. */
export class Looking {
  readonly found = signal<Found | null>(null);
  readonly failed = signal("");
  readonly #hub: Hub;
  #followers = 0;
  #stop: () => void = () => {};
  #timer: Cancel | null = null;
  #last = -Infinity;

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  /** Gives the way to look no more. */
  follow(): () => void {
    this.#followers += 1;
    if (this.#followers === 1) {
      this.#stop = effect(() => {
        void this.#hub.elsewhere.value;
        if (this.#hub.status.value.phase === "live") untracked(() => this.#plan());
      });
    }
    return () => {
      this.#followers -= 1;
      if (this.#followers) return;
      this.#stop();
      this.#timer?.();
      this.#timer = null;
    };
  }

  async look(refresh = false): Promise<void> {
    this.#last = this.#hub.ports.clock.now();
    try {
      this.found.value = await readFound(this.#hub, refresh);
      this.failed.value = "";
    } catch (error) {
      this.failed.value = words(error);
    }
  }

  #plan(): void {
    if (this.#timer) return;
    const { clock } = this.#hub.ports;
    const rest = this.#last + APART - clock.now();
    if (rest <= 0) return void this.look();
    this.#timer = clock.after(rest, () => {
      this.#timer = null;
      void this.look();
    });
  }
}

const lookings = new WeakMap<Hub, Looking>();

/** One for all that look. */
export function lookingOf(hub: Hub): Looking {
  let looking = lookings.get(hub);
  if (!looking) lookings.set(hub, (looking = new Looking(hub)));
  return looking;
}

// -- what to do with one ----------------------------------------------------------------------------------------------

export type How = "watch" | "resume" | "fork" | "take_over";

export interface Wish {
  readonly found: FoundSession;
  readonly how: How;
}

/** What somebody wants, until it is done, refused or given up. */
export const wish: Signal<Wish | null> = signal(null);

/** Somebody else has it: why it was refused, and what can be done instead. */
export interface Held {
  readonly message: string;
  readonly choices: readonly How[];
  readonly pid: number | null;
  /** Since when, where it is known. */
  readonly since: string;
}

export type Done = { row: SessionRow } | { held: Held } | { failed: string };

const CHOICES: readonly How[] = ["watch", "resume", "fork", "take_over"];

/** `pid`: the process that may be ended for it, as it was shown to who decided. */
export async function carryOut(hub: Hub, { found, how }: Wish, pid: number | null): Promise<Done> {
  const which = { agent: found.agent, sessionId: found.id };
  try {
    const row = await (how === "watch"
      ? hub.api.post<SessionRow>(path("discovered", "watch"), which)
      : hub.api.post<SessionRow>(path("discovered", "adopt"), { ...which, how, ...(pid !== null && { pid }) }));
    return { row };
  } catch (error) {
    const held = heldOf(error);
    return held ? { held } : { failed: words(error) };
  }
}

function heldOf(error: unknown): Held | null {
  if (!(error instanceof Refused) || error.failure.code !== "held") return null;
  const details = isObject(error.failure.details) ? error.failure.details : {};
  const told = Array.isArray(details["choices"]) ? details["choices"] : [];
  const pid = typeof details["pid"] === "number" ? details["pid"] : null;
  const choices = CHOICES.filter((one) => told.includes(one));
  return { message: error.message, choices, pid, since: textOf(details["since"]) };
}
