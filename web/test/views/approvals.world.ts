/** A hub and an open session without a network, for views: what is asked of the hub is written down. */
import { signal } from "@preact/signals";
import { type ComponentChild, h, render } from "preact";
import { HubContext, OpenContext } from "../../src/app/context";
import { Hub } from "../../src/app/hub";
import type { OpenSession } from "../../src/app/open";
import { listenForKeys } from "../../src/app/shortcuts";
import type { Answer, Request } from "../../src/link/ports";
import { Session } from "../../src/model/session";
import type { Json, SessionEvent } from "../../src/model/wire.gen";
import { approvalRow } from "./approvals.rows";

type Asked = { path: string; request: Request | undefined };

export class Place {
  readonly asked: Asked[] = [];
  readonly commands: { [field: string]: Json }[] = [];
  /** How the hub answers requests and commands. */
  answer: (asked: Asked) => Answer | Promise<Answer> = ({ path }) => ({ status: 200, body: allowed(path) });
  command: (command: { [field: string]: Json }) => Promise<Json> = async () => ({});
  readonly hub: Hub;
  readonly session = new Session();
  readonly open: OpenSession;
  readonly root = document.createElement("div");
  #ids = 0;
  #seq = 0;
  readonly #deaf: () => void;

  constructor({ id = "ses_1", scopes = ["read", "prompt", "approve", "admin"] } = {}) {
    this.hub = new Hub({
      clock: { now: () => 0, after: () => () => {} },
      random: () => 0.5,
      newId: () => `id-${(this.#ids += 1)}`,
      openSocket: () => ({ send: () => {}, close: () => {} }),
      fetch: async (path, request) => {
        this.asked.push({ path, request });
        return this.answer({ path, request });
      },
    });
    this.hub.command = this.hub.commandNow = (_, command) => {
      this.commands.push(command);
      return this.command(command);
    };
    this.hub.me.value = { name: "laptop", scopes };
    this.hub.status.value = { phase: "live", lane: "socket", seen: 0 };
    this.open = {
      id,
      hub: this.hub,
      session: signal<Session | null>(this.session),
      items: signal([]),
      head: signal(0),
      gone: signal(null),
      sent: signal(0),
    } as unknown as OpenSession;
    document.body.append(this.root);
    this.#deaf = listenForKeys();
  }

  /** Something happens in the session. */
  happen(...events: { type: string; [field: string]: Json }[]): void {
    for (const event of events) {
      const whole = { seq: (this.#seq += 1), sessionId: this.open.id, timestamp: "2026-03-01T10:00:00.000Z", ...event };
      this.session.apply(whole as unknown as SessionEvent);
    }
    (this.open.items as { value: unknown }).value = [...this.session.fields.items];
    this.open.head.value += 1;
  }

  tell(eventName: string, data: { [field: string]: Json }): void {
    this.happen({ type: "custom", namespace: "pilothouse", eventName, data });
  }

  show(view: ComponentChild): void {
    render(h(HubContext.Provider, { value: this.hub }, h(OpenContext.Provider, { value: this.open }, view)), this.root);
  }

  leave(): void {
    render(null, this.root);
    this.root.remove();
    this.#deaf();
    this.hub.link.close();
  }

  all(selector: string): HTMLElement[] {
    return [...this.root.querySelectorAll<HTMLElement>(selector)];
  }

  one<Kind extends HTMLElement = HTMLElement>(selector: string): Kind {
    const found = this.root.querySelector<Kind>(selector);
    if (!found) throw new Error(`no ${selector} in ${this.root.innerHTML}`);
    return found;
  }

  button(name: string): HTMLButtonElement {
    const found = this.all("button").find((one) =>
      (one.getAttribute("aria-label") ?? one.textContent)?.trim().startsWith(name),
    );
    if (!found) throw new Error(`no button ${name} among ${this.all("button").map((one) => one.textContent)}`);
    return found as HTMLButtonElement;
  }

  get text(): string {
    return this.root.textContent ?? "";
  }
}

/** What the hub says to a decision. */
function allowed(path: string): Json {
  const row = approvalRow(path.slice(path.lastIndexOf("/") + 1));
  return { ...row, state: "resolved", decision: { approved: true, resolvedBy: "user" }, decidedBy: "laptop" } as never;
}

export { approvalRow };
