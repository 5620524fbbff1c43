/** The link against the real server with the scripted agent, over both lanes. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket from "ws";
import { SessionFeed } from "../../src/link/feed";
import { Link, type Phase } from "../../src/link/link";
import type { Answer, Ports, Request, SocketEvents } from "../../src/link/ports";
import type { Session } from "../../src/model/session";
import type { Json } from "../../src/model/wire.gen";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const TOKEN = "a-token-for-tests";
const PATIENCE = 60_000;
const home = mkdtempSync(join(tmpdir(), "pilothouse-web-"));
let server: ChildProcess;
let base = "";

beforeAll(async () => {
  const program = ["-m", "tests.support.servers", home, "0"];
  server = spawn(join(ROOT, ".venv/bin/python"), program, { cwd: ROOT, stdio: ["pipe", "pipe", "inherit"] });
  const port = await new Promise<string>((resolve, reject) => {
    server.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    let said = "";
    server.stdout!.on("data", (piece: Buffer) => {
      said += String(piece);
      const ready = /^READY (\d+)\n/m.exec(said);
      if (ready) resolve(ready[1]!);
    });
  });
  base = `http://127.0.0.1:${port}/`;
}, PATIENCE);

afterAll(async () => {
  const ended = new Promise((resolve) => server.once("exit", resolve));
  server.stdin!.end();
  await ended;
  rmSync(home, { recursive: true, force: true });
}, PATIENCE);

async function ask(path: string, { method = "GET", body, signal }: Request = {}): Promise<Answer> {
  const headers = { Authorization: `Bearer ${TOKEN}`, Accept: "application/json", "Content-Type": "application/json" };
  const init = {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  };
  const response = await fetch(new URL(path, base), init);
  return { status: response.status, body: (await response.json().catch(() => null)) as Json };
}

function ports(sockets: boolean): Ports {
  const openSocket = (path: string, events: SocketEvents) => {
    const socket = new WebSocket(new URL(path, base.replace("http", "ws")), {
      headers: { Authorization: `Bearer ${TOKEN}` },
    });
    socket.on("message", (data) => events.message(String(data)));
    socket.on("close", (code) => events.closed(code));
    socket.on("error", () => {});
    return {
      send: (text: string) => socket.send(text),
      close: () =>
        void socket
          .removeAllListeners()
          .on("error", () => {})
          .close(),
    };
  };
  const refuse = (_: string, events: SocketEvents) => {
    queueMicrotask(() => events.closed(1006));
    return { send: () => {}, close: () => {} };
  };
  const after = (milliseconds: number, call: () => void) => {
    const timer = setTimeout(call, milliseconds);
    return () => clearTimeout(timer);
  };
  return {
    clock: { now: () => performance.now(), after },
    random: Math.random,
    newId: () => crypto.randomUUID(),
    openSocket: sockets ? openSocket : refuse,
    fetch: ask,
  };
}

class Watcher {
  readonly phases: Phase[] = [];
  readonly heard: string[] = [];
  #look: () => void = () => {};

  readonly told = {
    status: ({ phase }: { phase: Phase }) => void this.phases.push(phase),
    greeted: () => {},
    news: ({ type }: { type: string }) => void this.heard.push(type),
    changed: () => this.#look(),
    gone: () => {},
  };

  /** Until the session is so; looked at whenever it changes. */
  until(feed: SessionFeed, so: (session: Session) => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#look = () => {
        if (feed.session && so(feed.session)) resolve();
      };
      this.#look();
    });
  }
}

test.each([
  ["socket", true],
  ["poll", false],
] as const)(
  "a turn with an approval, by %s",
  async (kind, sockets) => {
    const watcher = new Watcher();
    const link = new Link(ports(sockets), watcher.told);
    const started = await ask("sessions", { method: "POST", body: { agent: "demo", cwd: home } });
    const { id } = started.body as { id: string };
    const feed = new SessionFeed(id, link, ask, watcher.told);
    try {
      await feed.open();
      await link.command(id, { command: "send_message", message: "permission" });
      await watcher.until(feed, (session) => session.pendingApprovals.length > 0);
      const { requestId, toolCallId } = feed.session!.pendingApprovals[0]!;
      await link.command(id, { command: "approve_tool_call", requestId, toolCallId });
      await watcher.until(feed, ({ fields }) => fields.turn?.stopReason === "end_turn" && fields.status === "idle");
      await expect(link.command(id, { command: "no_such_command" })).rejects.toMatchObject({
        failure: { code: "invalid" },
      });

      const theirs = (await ask(`sessions/${id}`)).body as unknown as Record<string, Json>;
      expect(theirs).toMatchObject(feed.session!.snapshot() as unknown as Record<string, Json>);
      expect(feed.session!.fields.items.map((item) => item.type)).toContain("approval");
      expect(link.status).toMatchObject({ phase: "live", lane: kind });
      expect(watcher.heard).toContain("approvals");
    } finally {
      feed.close();
      link.close();
    }
  },
  PATIENCE,
);
