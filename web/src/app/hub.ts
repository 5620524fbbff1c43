/**
 * The hub as the page knows it: the connection, who this is, the sessions, and what waits for a decision.
 *
 * Everything that a view shows of it is a signal. Nothing is guessed: a list changes when the hub says so.
 */
import { batch, computed, signal } from "@preact/signals";
import { CommandFailed, Link, type Status } from "../link/link";
import type { Command, Greeting, News } from "../link/lane";
import type { Cancel, Ports } from "../link/ports";
import type { Json } from "../model/wire.gen";
import { Api } from "./api";
import type { ApprovalRow, SessionRow } from "./rows";
import { byUrgency, isListed } from "./rows";

export type Scope = "read" | "prompt" | "approve" | "admin";

export class Hub {
  readonly link: Link;
  readonly api: Api;
  readonly ports: Ports;
  readonly status = signal<Status>({ phase: "connecting", lane: "socket", seen: null });
  readonly me = signal<Greeting | null>(null);
  /** Null until the hub has listed them. */
  readonly rows = signal<ReadonlyMap<string, SessionRow> | null>(null);
  /** Those that were archived or changed since while this page was open, and wait for nobody: the list has them not. */
  readonly archived = signal<ReadonlyMap<string, SessionRow>>(new Map());
  /** Where older sessions go on: the `before` of the next page. */
  readonly more = signal<string | null>(null);
  readonly approvals = signal<readonly ApprovalRow[]>([]);
  /** Approvals that were decided while this page was open, the last ones, by id. */
  readonly decided = signal<ReadonlyMap<string, ApprovalRow>>(new Map());

  /** Counts up when sessions that were begun elsewhere are others than before. */
  readonly elsewhere = signal(0);
  /** Rows of which only the place and the time are others, until they are told. */
  readonly #moved = new Map<string, SessionRow>();
  /** Sessions that were deleted since the list was told: an answer that was on its way may still have them. */
  readonly #gone = new Set<string>();
  #later: Cancel | null = null;

  readonly sessions = computed(() => [...(this.rows.value?.values() ?? [])].sort(byUrgency));

  constructor(ports: Ports) {
    this.ports = ports;
    this.api = new Api(ports.fetch);
    this.link = new Link(ports, {
      status: (status) => (this.status.value = status),
      greeted: (greeting) => (this.me.value = greeting),
      news: (news) => this.#news(news),
    });
  }

  may(scope: Scope): boolean {
    return this.me.value?.scopes.includes(scope) ?? false;
  }

  /** Have it carried out once, whatever happens to the connection. Rejects with CommandFailed. */
  command(sessionId: string, command: Command["command"]): Promise<Json> {
    return this.link.command(sessionId, command);
  }

  /** Have it carried out now or not at all. Rejects with CommandFailed, by the code `lost` when the hub is away. */
  commandNow(sessionId: string, command: Command["command"]): Promise<Json> {
    return this.link.commandNow(sessionId, command);
  }

  row(sessionId: string): SessionRow | undefined {
    return this.rows.value?.get(sessionId);
  }

  /** Whether it was deleted since the list was told. */
  wasDeleted(sessionId: string): boolean {
    return this.#gone.has(sessionId);
  }

  /** The next page of older sessions. */
  async older(): Promise<void> {
    const before = this.more.value;
    if (before === null) return;
    const page = await this.api.get<{ sessions: SessionRow[]; next: string | null }>(
      `sessions?before=${encodeURIComponent(before)}`,
    );
    this.more.value = page.next;
    this.#put(page.sessions);
  }

  /**
   * The list has those that were active last and were not archived; one that has waited for longer than all of them, or
   * was put aside while its agent waits, is missed most.
   */
  async #find(status: string, archived: "true" | "all" | "false"): Promise<void> {
    const page = await this.api
      .get<{ sessions: SessionRow[] }>(`sessions?status=${status}&archived=${archived}&limit=200`)
      .catch(() => null);
    // what was told meanwhile is later
    const isNews = ({ id }: SessionRow) =>
      !this.rows.value?.has(id) && !this.archived.value.has(id) && !this.#gone.has(id);
    const rows = page?.sessions.filter(isNews) ?? [];
    if (rows.length) this.#put(rows);
  }

  #put(rows: readonly SessionRow[]): void {
    const known = new Map(this.rows.value ?? []);
    const archived = new Map(this.archived.value);
    for (const row of rows) {
      const [into, from] = isListed(row) ? [known, archived] : [archived, known];
      into.set(row.id, row);
      from.delete(row.id);
    }
    this.#list(known, archived);
  }

  #list(known: ReadonlyMap<string, SessionRow>, archived: ReadonlyMap<string, SessionRow>): void {
    batch(() => {
      this.rows.value = known;
      if (archived.size || this.archived.peek().size) this.archived.value = archived;
    });
  }

  /** That a session goes on is told several times a second, and nobody looks so often; anything else is told at once. */
  #changed(row: SessionRow): void {
    const known = this.rows.peek()?.get(row.id);
    this.#moved.delete(row.id);
    if (!known || !isSame(known, row)) return this.#put([row]);
    this.#moved.set(row.id, row);
    this.#later ??= this.ports.clock.after(MOVED, () => {
      this.#later = null;
      const rows = [...this.#moved.values()];
      this.#moved.clear();
      if (rows.length) this.#put(rows);
    });
  }

  #news(news: News): void {
    switch (news.type) {
      case "sessions_list": {
        const rows = news.sessions as unknown as SessionRow[];
        this.#moved.clear();
        this.#gone.clear();
        this.#list(new Map(rows.filter(isListed).map((row) => [row.id, row])), new Map());
        this.more.value = typeof news.next === "string" ? news.next : null;
        const whole = this.more.value === null;
        for (const status of WAITING) void this.#find(status, whole ? "true" : "all");
        if (!whole) for (const status of WORKING) void this.#find(status, "false");
        break;
      }
      case "session_changed":
        this.#changed(news.session as unknown as SessionRow);
        break;
      case "session_deleted": {
        this.#moved.delete(news.sessionId);
        this.#gone.add(news.sessionId);
        const [known, archived] = [new Map(this.rows.value ?? []), new Map(this.archived.value)];
        known.delete(news.sessionId);
        archived.delete(news.sessionId);
        this.#list(known, archived);
        break;
      }
      case "approvals":
        this.approvals.value = news.approvals as unknown as ApprovalRow[];
        break;
      case "approval_requested": {
        const asked = news.approval as unknown as ApprovalRow;
        this.approvals.value = [...this.approvals.value.filter((one) => one.id !== asked.id), asked];
        break;
      }
      case "discovered_changed":
        this.elsewhere.value += 1;
        break;
      case "approval_resolved": {
        const settled = news.approval as unknown as ApprovalRow;
        this.approvals.value = this.approvals.value.filter((one) => one.id !== settled.id);
        this.decided.value = new Map([...this.decided.value, [settled.id, settled] as const].slice(-DECIDED));
        break;
      }
    }
  }
}

/** Statuses that put a session before all others. */
const WAITING = ["waiting_for_approval", "waiting_for_input"];
const WORKING = ["running", "thinking", "starting"];
const DECIDED = 50;
/** Milliseconds after which it is told that sessions went on. */
const MOVED = 1000;

/** The same but for how far it got, and when. */
function isSame(one: SessionRow, other: SessionRow): boolean {
  const names = Object.keys({ ...one, ...other }) as (keyof SessionRow)[];
  return names.every((name) => name === "seq" || name === "updated" || one[name] === other[name]);
}

/** What went wrong, in words that can be shown. */
export const words = (error: unknown): string =>
  error instanceof CommandFailed ? error.failure.message : error instanceof Error ? error.message : String(error);
