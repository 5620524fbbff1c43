/** A session as the transcript sees it, which a test moves on by hand. */
import { signal } from "@preact/signals";
import { h, render } from "preact";
import type { Growth } from "../../src/app/open";
import { Session } from "../../src/model/session";
import type { SessionEvent, SessionItem } from "../../src/model/wire.gen";
import type { Source } from "../../src/views/text/source";
import { Transcript } from "../../src/views/transcript/transcript";

export class Played implements Source {
  readonly session = signal<Session | null>(null);
  readonly items = signal<readonly SessionItem[]>([]);
  readonly head = signal(0);
  readonly #versions = new WeakMap<SessionItem, ReturnType<typeof signal<number>>>();
  readonly #growths = new WeakMap<SessionItem, Set<Growth>>();

  constructor(events: readonly SessionEvent[] = []) {
    this.session.value = new Session();
    this.tell(...events);
  }

  version(item: SessionItem) {
    let known = this.#versions.get(item);
    if (!known) this.#versions.set(item, (known = signal(0)));
    return known as ReturnType<Source["version"]>;
  }

  grown(item: SessionItem, told: Growth): () => void {
    const all = this.#growths.get(item) ?? new Set<Growth>();
    this.#growths.set(item, all.add(told));
    return () => all.delete(told);
  }

  /** Let events happen, and the page be told. */
  tell(...events: SessionEvent[]): void {
    const session = this.session.peek()!;
    for (const event of events) session.apply(event);
    const changes = session.takeChanges();
    for (const [item, text] of changes.items) {
      for (const told of this.#growths.get(item) ?? []) told(text);
      const version = this.#versions.get(item);
      if (version) version.value = (version.value ?? 0) + 1;
    }
    if (changes.order) this.items.value = [...session.fields.items];
    this.head.value += 1;
  }
}

let seq = 0;
/** An event with the fields that every one has. */
export function event(fields: object): SessionEvent {
  seq += 1;
  const timestamp = new Date(Date.UTC(2026, 2, 1, 10, 0, 0, seq)).toISOString();
  return { seq, sessionId: "s", timestamp, ...fields } as SessionEvent;
}

export const said = (role: string, messageId: string, text: string): SessionEvent =>
  event({ type: "message:complete", messageId, role, content: [{ type: "text", text }] });

export const turn = (turnId: string, more: object = {}): SessionEvent =>
  event({ type: "custom", namespace: "pilothouse", eventName: "turn_started", data: { turnId, ...more } });

export const turnEnd = (turnId: string, stopReason: string): SessionEvent =>
  event({ type: "custom", namespace: "pilothouse", eventName: "turn_ended", data: { turnId, stopReason } });

/** A call from its start to its end. */
export function called(toolCallId: string, name: string, input: object, output = "done"): SessionEvent[] {
  return [
    event({ type: "tool:start", toolCallId, name, category: "other" }),
    event({ type: "tool:executing", toolCallId, name, input, riskLevel: "low", requiresApproval: false }),
    event({ type: "tool:result", toolCallId, name, output, duration: 5 }),
  ];
}

/** The transcript on the page. */
export function shown(source: Source, readSeq?: number, foundSeq?: number): HTMLElement {
  const place = document.createElement("div");
  document.body.replaceChildren(place);
  render(h(Transcript, { source, readSeq, foundSeq }), place);
  return place;
}

/** Until everything is drawn that was asked for, lazy parts included. */
export async function settled(): Promise<void> {
  for (let round = 0; round < 4; round += 1) await new Promise((resolve) => setTimeout(resolve, 0));
}

export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Everything on the page that an agent could have made do something. */
export function harm(place: ParentNode): string[] {
  const found: string[] = [];
  for (const element of place.querySelectorAll("*")) {
    if (/^(?:script|object|embed|form|base|meta|link|style)$/i.test(element.tagName)) found.push(element.tagName);
    for (const { name, value } of element.attributes) {
      if (/^on/i.test(name)) found.push(`${element.tagName} ${name}`);
      if (
        /^(?:href|src|action|formaction|xlink:href)$/i.test(name) &&
        /^\s*(?:javascript|vbscript|data:text)/i.test(value)
      )
        found.push(`${element.tagName} ${name}=${value}`);
    }
    if (element instanceof HTMLImageElement && /^https?:/i.test(element.getAttribute("src") ?? ""))
      found.push(element.outerHTML);
    if (element.getAttribute("target") === "_blank" && !/noopener/.test(element.getAttribute("rel") ?? "")) {
      found.push(element.outerHTML);
    }
  }
  return found;
}
