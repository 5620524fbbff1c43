import { expect, test, vi } from "vitest";
import { countNeeded } from "../../src/app/notifying";
import { Hub } from "../../src/app/hub";
import type { Ports, SocketEvents } from "../../src/link/ports";

const row = (id: string, more: object = {}) => ({
  id,
  agent: "demo",
  cwd: "/work",
  title: null,
  status: "running",
  created: "",
  updated: "2026-01-01T00:00:00Z",
  archived: null,
  seq: 1,
  pendingApprovals: 0,
  queueLength: 0,
  ...more,
});

function world(fetch: Ports["fetch"] = async () => ({ status: 404, body: null })) {
  let socket: SocketEvents | null = null;
  const waiting: (() => void)[] = [];
  const ports: Ports = {
    clock: { now: () => 0, after: (_, call) => (waiting.push(call), () => {}) },
    random: () => 0.5,
    newId: () => "id",
    openSocket: (_path, events) => ((socket = events), { send: () => {}, close: () => {} }),
    fetch,
  };
  const hub = new Hub(ports);
  const say = (message: object) => socket?.message(JSON.stringify(message));
  say({ type: "authenticated", name: "laptop", scopes: [] });
  say({ type: "sessions_list", sessions: [row("a"), row("b")], next: null });
  const later = () => waiting.splice(0).forEach((call) => call());
  return { hub, say, later };
}

const change = (id: string, more: object) => ({ type: "session_changed", session: row(id, more) });

test("that a session goes on is told a little later, the last word of it", () => {
  const { hub, say, later } = world();
  const before = hub.rows.value;
  say(change("a", { seq: 2 }));
  say(change("a", { seq: 5, updated: "2026-01-01T00:00:09Z" }));
  expect(hub.rows.value).toBe(before);
  later();
  expect(hub.row("a")).toMatchObject({ seq: 5, updated: "2026-01-01T00:00:09Z" });
});

test("anything else is told at once, and an older word never comes after it", () => {
  const { hub, say, later } = world();
  say(change("a", { seq: 2 }));
  say(change("a", { seq: 3, status: "waiting_for_approval", pendingApprovals: 1 }));
  expect(hub.row("a")).toMatchObject({ seq: 3, status: "waiting_for_approval" });
  say(change("b", { seq: 2 }));
  say({ type: "session_deleted", sessionId: "b" });
  say(change("c", { seq: 1 }));
  expect([...(hub.rows.value?.keys() ?? [])]).toEqual(["a", "c"]);
  later();
  expect(hub.row("a")?.seq).toBe(3);
  expect(hub.row("b")).toBeUndefined();
});

test("one that is archived is known all the same, until it is brought back, deleted or forgotten", () => {
  const { hub, say } = world();
  const archived = "2026-01-02T00:00:00Z";
  const aside = () => [...hub.archived.value.keys()];
  say(change("a", { archived, watched: true }));
  expect([hub.row("a"), hub.archived.value.get("a")?.watched]).toEqual([undefined, true]);
  say(change("a", {}));
  expect([hub.row("a")?.id, aside()]).toEqual(["a", []]);
  say(change("b", { archived }));
  say({ type: "session_deleted", sessionId: "b" });
  expect(aside()).toEqual([]);
  say(change("a", { archived }));
  say({ type: "sessions_list", sessions: [], next: null });
  expect(aside()).toEqual([]);
});

test("one that waits for somebody is in the list although it is archived, for as long as it waits", async () => {
  const archived = "2026-01-02T00:00:00Z";
  const { hub, say } = world(async (path) => {
    const old = path.includes("archived=true") && path.includes("waiting_for_input");
    const sessions = old ? [row("old", { status: "waiting_for_input", archived })] : [];
    return { status: 200, body: { sessions, next: null } };
  });
  await vi.waitFor(() => expect(hub.row("old")).toBeDefined());
  say(change("a", { status: "waiting_for_input" }));
  say(change("a", { status: "waiting_for_input", archived }));
  expect(hub.sessions.value.map(({ id }) => id).slice(0, 2)).toEqual(["a", "old"]);
  expect(countNeeded(hub)).toBe(2);
  say(change("a", { status: "running", archived }));
  expect([hub.row("a"), hub.archived.value.get("a")?.status]).toEqual([undefined, "running"]);
});

test("those that wait or work are found also beyond the first page, and what was told since then stays", async () => {
  const asked: string[] = [];
  const { hub, say } = world(async (path) => {
    asked.push(path);
    const status = /status=(\w+)/.exec(path)?.[1] ?? "";
    return { status: 200, body: { sessions: [row(`old-${status}`, { status }), row("a", { seq: 0 })], next: null } };
  });
  await Promise.resolve();
  // the page had all but those that were archived
  expect(asked.map((path) => new URLSearchParams(path.split("?")[1]).get("archived"))).toEqual(["true", "true"]);
  say({ type: "sessions_list", sessions: [row("a")], next: "more" });
  say(change("old-running", { seq: 9, status: "idle" }));
  await vi.waitFor(() => expect(hub.row("old-thinking")).toBeDefined());
  expect(hub.row("old-waiting_for_input")?.status).toBe("waiting_for_input");
  expect(hub.row("old-waiting_for_approval")).toBeDefined();
  expect(hub.row("old-running")).toMatchObject({ seq: 9, status: "idle" });
  expect(hub.row("a")?.seq).toBe(1);
});

test("a new list is what there is", () => {
  const { hub, say, later } = world();
  say(change("a", { seq: 9 }));
  say({ type: "sessions_list", sessions: [row("b")], next: null });
  later();
  expect([...(hub.rows.value?.keys() ?? [])]).toEqual(["b"]);
});

test("what happens elsewhere is counted, for who looks", () => {
  const { hub, say } = world();
  say({ type: "discovered_changed" });
  expect(hub.elsewhere.value).toBe(1);
});
