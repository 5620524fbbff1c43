import { describe, expect, test } from "vitest";
import { Session } from "../../src/model/session";
import type { SessionEvent, SessionItem } from "../../src/model/wire.gen";
import { copy, goldens } from "../goldens";

function folded(events: SessionEvent[], into = new Session()): Session {
  for (const event of copy(events)) into.apply(event);
  return into;
}

const cases = goldens();

test("there are goldens of every kind of event", () => {
  const types = new Set(cases.flatMap(({ events }) => events.map((event) => event.type)));
  expect(types.size).toBe(37);
});

describe.each(cases)("$name", ({ events, snapshot }) => {
  test("folds to what the hub folds", () => {
    expect(folded(events).snapshot()).toEqual(snapshot);
  });

  test("a snapshot at any event and the events after it are the whole", () => {
    const whole = folded(events).snapshot();
    const step = Math.ceil(events.length / 12);
    for (let cut = 0; cut <= events.length; cut += step) {
      const resumed = Session.from(folded(events.slice(0, cut)).snapshot());
      expect(folded(events.slice(cut), resumed).snapshot()).toEqual(whole);
    }
  });

  test("events that come twice change nothing", () => {
    const once = folded(events).snapshot();
    const session = folded(events.filter((event) => event.seq > 0));
    const before = session.snapshot();
    expect(
      folded(
        events.filter((event) => event.seq > 0),
        session,
      ).snapshot(),
    ).toEqual(before);
    if (events.every((event) => event.seq > 0)) expect(before).toEqual(once);
  });

  test("every change of an item is told, and what grew is told exactly", () => {
    const session = new Session();
    const shown = new Map<SessionItem, { json: string; text: string }>();
    for (const event of copy(events)) {
      const before = new Set(session.fields.items);
      session.apply(event);
      const changes = session.takeChanges();
      for (const item of session.fields.items) {
        const seen = shown.get(item);
        const json = JSON.stringify(item);
        const grown = changes.items.get(item);
        if (seen && json !== seen.json) expect(changes.items.has(item)).toBe(true);
        if (seen && typeof grown === "string") expect(textOf(item)).toBe(seen.text + grown);
        shown.set(item, { json, text: textOf(item) });
      }
      const same = before.size === session.fields.items.length && session.fields.items.every((one) => before.has(one));
      expect(changes.order).toBe(!same);
    }
  });
});

function textOf(item: SessionItem): string {
  if (item.type === "message") return item.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  if (item.type === "thought") return item.text;
  return item.type === "tool_call" ? (item.output ?? "") : "";
}

test("an approval keeps what the hub says about it", () => {
  const session = new Session();
  const facts = {
    notes: ["Denied before in this turn."],
    origin: "hub" as const,
    ruleOffers: [{ offerId: "exact" as const, text: "Run exactly `x`", subject: "commands", pattern: "x" }],
    ruleRefusal: "because",
    questionIds: ["q1"],
  };
  session.apply({
    type: "approval:requested",
    ...{ seq: 1, sessionId: "s", timestamp: "", requestId: "a1", toolCallId: "c", toolName: "Bash" },
    ...{ toolInput: {}, description: "", riskLevel: "low" as const },
    ...facts,
  });
  expect(session.pendingApprovals[0]).toMatchObject(facts);
});

test("an event of a later version is kept among the items", () => {
  const event = { type: "weather:storm", seq: 1, sessionId: "s", timestamp: "", force: 9 } as unknown as SessionEvent;
  expect(folded([event]).fields.items).toMatchObject([
    { type: "custom", namespace: "unified", eventName: "weather:storm", data: { force: 9 } },
  ]);
});

test("a type that objects have by birth is an event of a later version too", () => {
  const event = { type: "constructor", seq: 1, sessionId: "s", timestamp: "" } as unknown as SessionEvent;
  expect(folded([event]).fields.items).toHaveLength(1);
});

test("what a snapshot says beside the state is no state", () => {
  const snapshot = { ...new Session().snapshot(), archived: true, updated: "2026" };
  expect(Session.from(snapshot).snapshot()).toEqual(new Session().snapshot());
});

test("chatter without end is dropped, and counted", () => {
  const session = new Session();
  for (let seq = 1; seq <= 2500; seq += 1) {
    session.apply({
      type: "interaction:notification",
      seq,
      sessionId: "s",
      timestamp: "",
      level: "info",
      title: "",
      message: `${seq}`,
    });
  }
  const { items, chatterDropped } = session.fields;
  expect(items.length).toBeLessThanOrEqual(1000);
  expect(items.length + chatterDropped).toBe(2500);
  expect(items.at(-1)).toMatchObject({ message: "2500" });
});

test("a long text is not copied for every piece of it", () => {
  const session = new Session();
  const head = { sessionId: "s", timestamp: "", messageId: "m", role: "assistant" } as const;
  for (let seq = 1; seq <= 20_000; seq += 1) {
    session.apply({ type: "message:delta", ...head, seq, delta: "0123456789" });
  }
  expect(session.takeChanges().items.size).toBe(1);
  expect(textOf(session.fields.items[0]!)).toHaveLength(200_000);
});
