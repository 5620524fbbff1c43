/**
 * The hub as the page knows it: the connection, who this is, the sessions, and what waits for a decision.
 *
 * Everything that a view shows of it is a signal. Nothing is guessed: a list changes when the hub says so.
 */
import { computed, signal } from "@preact/signals";
import { CommandFailed, Link, type Status } from "../link/link";
import type { Command, Greeting, News } from "../link/lane";
import type { Ports } from "../link/ports";
import type { Json } from "../model/wire.gen";
import { Api } from "./api";
import type { ApprovalRow, SessionRow } from "./rows";
import { byUrgency } from "./rows";

export type Scope = "read" | "prompt" | "approve" | "admin";

export class Hub {
  readonly link: Link;
  readonly api: Api;
  readonly ports: Ports;
  readonly status = signal<Status>({ phase: "connecting", lane: "socket", seen: null });
  readonly me = signal<Greeting | null>(null);
  /** Null until the hub has listed them. */
  readonly rows = signal<ReadonlyMap<string, SessionRow> | null>(null);
  /** Where older sessions go on: the `before` of the next page. */
  readonly more = signal<string | null>(null);
  readonly approvals = signal<readonly ApprovalRow[]>([]);
  /** Approvals that were decided while this page was open, the last ones, by id. */
  readonly decided = signal<ReadonlyMap<string, ApprovalRow>>(new Map());

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

  row(sessionId: string): SessionRow | undefined {
    return this.rows.value?.get(sessionId);
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

  #put(rows: readonly SessionRow[]): void {
    const known = new Map(this.rows.value ?? []);
    for (const row of rows) {
      if (row.archived === null) known.set(row.id, row);
      else known.delete(row.id);
    }
    this.rows.value = known;
  }

  #news(news: News): void {
    switch (news.type) {
      case "sessions_list": {
        const rows = news.sessions as unknown as SessionRow[];
        this.rows.value = new Map(rows.filter((row) => row.archived === null).map((row) => [row.id, row]));
        this.more.value = typeof news.next === "string" ? news.next : null;
        break;
      }
      case "session_changed":
        this.#put([news.session as unknown as SessionRow]);
        break;
      case "session_deleted": {
        const known = new Map(this.rows.value ?? []);
        known.delete(news.sessionId);
        this.rows.value = known;
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
      case "approval_resolved": {
        const settled = news.approval as unknown as ApprovalRow;
        this.approvals.value = this.approvals.value.filter((one) => one.id !== settled.id);
        this.decided.value = new Map([...this.decided.value, [settled.id, settled] as const].slice(-DECIDED));
        break;
      }
    }
  }
}

const DECIDED = 50;

/** What went wrong, in words that can be shown. */
export const words = (error: unknown): string =>
  error instanceof CommandFailed ? error.failure.message : error instanceof Error ? error.message : String(error);
