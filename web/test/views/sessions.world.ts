/** A page with a hub that says what a test wants it to say, and keeps what it is asked. */
import { type ComponentChildren, h, render } from "preact";
import { act } from "preact/test-utils";
import { HubContext } from "../../src/app/context";
import { Hub, type Scope } from "../../src/app/hub";
import type { ApprovalRow, SessionRow } from "../../src/app/rows";
import type { Ports, Request, SocketEvents } from "../../src/link/ports";
import type { Json } from "../../src/model/wire.gen";

export interface Asked {
  method: string;
  path: string;
  body: Json | undefined;
}

/** JSON, or what makes it. */
type Answer = object | null | ((asked: Asked) => object);

export class World {
  readonly hub: Hub;
  readonly asked: Asked[] = [];
  readonly sent: Record<string, Json>[] = [];
  readonly place = document.createElement("div");
  readonly #answers: [RegExp, Answer][] = [];
  #socket: SocketEvents | null = null;
  #ids = 0;

  constructor(scopes: Scope[] = ["read", "prompt", "approve", "admin"]) {
    document.body.replaceChildren(this.place);
    const ports: Ports = {
      clock: { now: () => 0, after: () => () => {} },
      random: () => 0.5,
      newId: () => `id-${++this.#ids}`,
      openSocket: (_path, events) => {
        this.#socket = events;
        return { send: (text) => void this.sent.push(JSON.parse(text)), close: () => {} };
      },
      fetch: async (path, request) => this.#answer(path, request),
    };
    this.hub = new Hub(ports);
    this.say({ type: "authenticated", name: "laptop", scopes });
  }

  /** What the hub says over the socket. */
  say(message: Record<string, unknown>): void {
    act(() => this.#socket?.message(JSON.stringify(message)));
  }

  list(...rows: SessionRow[]): void {
    this.say({ type: "sessions_list", sessions: rows, next: null });
  }

  change(row: SessionRow): void {
    act(() => void (this.hub.rows.value = new Map([...(this.hub.rows.value ?? []), [row.id, row]])));
  }

  lose(code = 1006): void {
    act(() => this.#socket?.closed(code));
  }

  /** The last that fits answers. */
  answer(pattern: RegExp, answer: Answer): void {
    this.#answers.unshift([pattern, answer]);
  }

  refuse(pattern: RegExp, status: number, code: string, message: string, details: Json = null): void {
    this.answer(pattern, { $status: status, error: { code, message, recoverable: true, details } });
  }

  #answer(path: string, request: Request = {}): { status: number; body: Json } {
    const asked = { method: request.method ?? "GET", path, body: request.body };
    this.asked.push(asked);
    const found = this.#answers.find(([pattern]) => pattern.test(`${asked.method} ${path}`))?.[1];
    const body: unknown = typeof found === "function" ? found(asked) : found;
    if (body === undefined)
      return { status: 404, body: { error: { code: "not_found", message: "no", recoverable: true } } };
    const status = (body as { $status?: number } | null)?.$status ?? 200;
    return { status, body: body as Json };
  }

  show(view: ComponentChildren): void {
    act(() => render(h(HubContext.Provider, { value: this.hub }, view), this.place));
  }

  close(): void {
    act(() => render(null, this.place));
  }

  get text(): string {
    return this.place.textContent ?? "";
  }

  find<Kind extends HTMLElement = HTMLElement>(selector: string): Kind {
    const found = document.querySelector<Kind>(selector);
    if (!found) throw new Error(`nothing is ${selector} in ${document.body.innerHTML}`);
    return found;
  }

  all(selector: string): HTMLElement[] {
    return [...document.querySelectorAll<HTMLElement>(selector)];
  }

  /** The button or the choice with this text or label. */
  button(name: string): HTMLButtonElement {
    const all = this.all("button, a, [role=menuitem]") as HTMLButtonElement[];
    const found = all.find((one) => one.textContent?.trim() === name || one.getAttribute("aria-label") === name);
    if (!found) throw new Error(`no button ${name} in ${document.body.innerHTML}`);
    return found;
  }

  async press(name: string): Promise<void> {
    act(() => this.button(name).click());
    await this.settle();
  }

  type(selector: string, text: string): void {
    const field = this.find<HTMLInputElement>(selector);
    act(() => {
      field.value = text;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }

  async key(selector: string, key: string, more: KeyboardEventInit = {}): Promise<void> {
    act(() => {
      const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
      this.find(selector).dispatchEvent(event);
    });
    await this.settle();
  }

  /** Let answers arrive and be drawn. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) await act(async () => void (await Promise.resolve()));
  }
}

export const row = (id: string, more: Partial<SessionRow> = {}): SessionRow => ({
  id,
  agent: "claude",
  cwd: "/home/ada/shop",
  title: `Title of ${id}`,
  status: "idle",
  created: "2026-01-01T00:00:00Z",
  updated: "2026-01-01T00:00:00Z",
  archived: null,
  seq: 1,
  pendingApprovals: 0,
  queueLength: 0,
  ...more,
});

export const approval = (id: string, sessionId: string): ApprovalRow => ({
  id,
  sessionId,
  state: "pending",
  request: {
    type: "approval:requested",
    requestId: id,
    toolCallId: "call",
    toolName: "Bash",
    toolInput: {},
    description: "Run npm test",
    riskLevel: "low",
    seq: 1,
    sessionId,
    timestamp: "2026-01-01T00:00:00Z",
  },
  options: [],
  created: "2026-01-01T00:00:00Z",
  expires: null,
  resolved: null,
  decision: null,
  decidedBy: null,
});
