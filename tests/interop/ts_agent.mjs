// The interop agent on the TypeScript SDK: `node ts_agent.mjs`. tests/e2e/test_interop.py says what it does.
import { createHash } from "node:crypto";
import { Readable, Writable } from "node:stream";
import { PROTOCOL_VERSION, RequestError, agent, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const sessions = new Map();
let opened = 0;

function openSession(id, cwd) {
  const session = { id, cwd, mode: "ask", config: { model: "small", web: false }, notes: [] };
  session.stopped = new Promise((resolve) => (session.stop = resolve));
  session.ended = new Promise((resolve) => (session.end = resolve));
  sessions.set(id, session);
  return session;
}

function sessionOf({ sessionId }) {
  const session = sessions.get(sessionId);
  if (!session) throw notFound(sessionId);
  return session;
}

const notFound = (uri) => new RequestError(-32002, "Resource not found", { uri });
const text = (value) => ({ type: "text", text: value });
const asIs = (params) => params;

const modes = (session) => ({
  currentModeId: session.mode,
  availableModes: [
    { id: "ask", name: "Ask", description: "Asks first" },
    { id: "code", name: "Code" },
  ],
});

const configOptions = ({ config }) => [
  {
    type: "select",
    id: "model",
    name: "Model",
    category: "model",
    currentValue: config.model,
    options: ["Small", "Large"].map((name) => ({ value: name.toLowerCase(), name })),
  },
  { type: "boolean", id: "web", name: "Web", currentValue: config.web },
];

// What a prompt can do: the first word of its first block names the command, the other words are its arguments.
class Turn {
  constructor(client, session, params, signal) {
    Object.assign(this, { client, session, params, signal });
    this.blocks = params.prompt.slice(1);
  }

  run() {
    const [command, ...words] = this.params.prompt[0].text.split(" ");
    return this[command](...words);
  }

  update(update) {
    return this.client.notify(methods.client.session.update, { sessionId: this.session.id, update });
  }

  say(value) {
    return this.update({ sessionUpdate: "agent_message_chunk", content: text(value) });
  }

  ask(method, params) {
    return this.client.request(method, { sessionId: this.session.id, ...params });
  }

  async text() {
    await this.update({ sessionUpdate: "agent_thought_chunk", content: this.blocks.shift() });
    await this.image();
  }

  async image() {
    for (const content of this.blocks) await this.update({ sessionUpdate: "agent_message_chunk", content });
  }

  async meta() {
    await this.say(JSON.stringify(this.params._meta ?? {}));
  }

  async plan() {
    for (const [first, second] of [["in_progress", "pending"], ["completed", "in_progress"]]) {
      await this.update({
        sessionUpdate: "plan",
        entries: [
          { content: "Look", priority: "high", status: first },
          { content: "Répare", priority: "medium", status: second },
          { content: "Rest", priority: "low", status: "pending" },
        ],
      });
    }
    await this.update({
      sessionUpdate: "available_commands_update",
      availableCommands: [
        { name: "test", description: "Run tests", input: { hint: "which" } },
        { name: "help", description: "Show help" },
      ],
    });
    await this.update({
      sessionUpdate: "session_info_update",
      title: "Neuer Titel",
      updatedAt: "2026-11-15T00:00:00Z",
    });
    const cost = { amount: 0.25, currency: "EUR" };
    await this.update({ sessionUpdate: "usage_update", used: 1200, size: 200000, cost });
  }

  async tool(name) {
    const path = `${this.session.cwd}/${name}`;
    const newText = this.blocks[0].text;
    const toolCallId = "t1";
    await this.update({
      sessionUpdate: "tool_call",
      toolCallId,
      title: "Write a file",
      kind: "edit",
      status: "pending",
      locations: [{ path, line: 1 }],
      rawInput: { path },
    });
    const options = ["reject_always", "reject_once", "allow_always", "allow_once"].map((kind, number) => ({
      optionId: `option-${number}`,
      name: kind,
      kind,
    }));
    const { outcome } = await this.ask(methods.client.session.requestPermission, { toolCall: { toolCallId }, options });
    const end = { sessionUpdate: "tool_call_update", toolCallId, status: "failed" };
    const chosen = options.find((option) => option.optionId === outcome.optionId);
    if (outcome.outcome === "selected" && chosen.kind.startsWith("allow")) {
      await this.ask(methods.client.fs.writeTextFile, { path, content: newText });
      const content = [{ type: "diff", path, oldText: null, newText }];
      Object.assign(end, { status: "completed", content, rawOutput: { ok: true } });
    } else if (outcome.outcome === "selected") {
      end.content = [{ type: "content", content: text(`refused by ${outcome.optionId}`) }];
    }
    await this.update(end);
    return outcome.outcome === "cancelled" ? "cancelled" : "end_turn";
  }

  async read(name, line, limit) {
    const range = line ? { line: Number(line), limit: Number(limit) } : {};
    try {
      const { content } = await this.ask(methods.client.fs.readTextFile, {
        path: `${this.session.cwd}/${name}`,
        ...range,
      });
      await this.say(content);
    } catch (error) {
      await this.say(JSON.stringify([error.code, error.data]));
    }
  }

  async terminal() {
    const sessionId = this.session.id;
    const shell = await this.client.createTerminal({
      sessionId,
      command: "sh",
      args: ["-c", 'printf "%s|" "$GREETING"; pwd; exit 3'],
      env: [{ name: "GREETING", value: "cześć" }],
      cwd: this.session.cwd,
      outputByteLimit: 4096,
    });
    await this.update({
      sessionUpdate: "tool_call",
      toolCallId: "t2",
      title: "Run sh",
      kind: "execute",
      status: "in_progress",
      content: [{ type: "terminal", terminalId: shell.id }],
    });
    const exited = await shell.waitForExit();
    const output = await shell.currentOutput();
    await shell.release();
    const sleeper = await this.client.createTerminal({ sessionId, command: "sleep", args: ["600"] });
    const waiting = sleeper.waitForExit();
    const before = await sleeper.currentOutput();
    await sleeper.kill();
    const killed = await waiting;
    await sleeper.release();
    const gone = await sleeper.currentOutput().then(() => null, (error) => error.code);
    await this.say(
      JSON.stringify({
        exit: [exited.exitCode ?? null, exited.signal ?? null],
        output: [output.output, output.truncated, output.exitStatus?.exitCode],
        running: before.exitStatus == null,
        killed: [killed.exitCode ?? null, killed.signal ?? null],
        gone,
      }),
    );
  }

  async ext() {
    const answer = await this.client.request("_interop/echo", { text: "żółw", list: [1, 2.5, null, true] });
    await this.client.notify("_interop/note", { sessionId: this.session.id, note: "hello" });
    const missing = await this.client.request("_interop/missing", {}).then(() => null, (error) => error.code);
    await this.say(JSON.stringify({ answer, missing, notes: this.session.notes }));
  }

  async wait() {
    await this.say("waiting");
    const aborted = new Promise((resolve) => this.signal.addEventListener("abort", () => resolve("aborted")));
    const end = await Promise.race([this.session.stopped, aborted]);
    this.session.end(end);
    if (end === "aborted") throw this.signal.reason;
    await this.say("stopped");
    return end;
  }

  async flood(count) {
    for (let number = 0; number < Number(count); number++) await this.say(String(number));
  }

  async big(count) {
    await this.say(createHash("sha256").update(this.blocks[0].text).digest("hex"));
    await this.say("水".repeat(Number(count)));
  }

  stop(reason) {
    return reason;
  }

  error() {
    throw new RequestError(-32050, "Interop failure", { why: "żółw", list: [1, null] });
  }

  crash() {
    throw new Error("boom");
  }
}

agent({ name: "interop-agent" })
  .onRequest(methods.agent.initialize, ({ params }) => ({
    protocolVersion: Math.min(params.protocolVersion, PROTOCOL_VERSION),
    agentInfo: { name: "interop-agent", title: "Interop Ω", version: "1.0" },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, embeddedContext: true },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
    },
    authMethods: [{ id: "token", name: "Token", description: "A token" }],
    _meta: {
      seen: {
        client: params.clientInfo.name,
        terminal: params.clientCapabilities.terminal,
        meta: params._meta ?? {},
      },
    },
  }))
  .onRequest(methods.agent.authenticate, ({ params: { methodId } }) => {
    if (methodId !== "token") throw RequestError.authRequired({ methodId });
    return {};
  })
  .onRequest(methods.agent.logout, () => ({}))
  .onRequest(methods.agent.session.new, ({ params: { cwd, mcpServers } }) => {
    const session = openSession(`s${++opened}`, cwd);
    const servers = mcpServers.map((server) => [server.name, server.type ?? "stdio"]);
    return {
      sessionId: session.id,
      modes: modes(session),
      configOptions: configOptions(session),
      _meta: { cwd, servers },
    };
  })
  .onRequest(methods.agent.session.load, async ({ params: { sessionId, cwd }, client }) => {
    if (!sessionId.startsWith("old-")) throw notFound(sessionId);
    for (const [sessionUpdate, words] of [
      ["user_message_chunk", "What is the answer?"],
      ["agent_thought_chunk", "Hmm …"],
      ["agent_message_chunk", "42 — żółw 🐢"],
    ]) {
      await client.notify(methods.client.session.update, { sessionId, update: { sessionUpdate, content: text(words) } });
    }
    return { modes: modes(openSession(sessionId, cwd)) };
  })
  .onRequest(methods.agent.session.list, ({ params: { cwd, cursor } }) => {
    const page = cursor === "page-2" ? 2 : 1;
    const title = `Gespräch ${page}`;
    return {
      sessions: [{ sessionId: `old-${page}`, cwd, title, updatedAt: "2026-11-01T12:00:00Z" }],
      ...(page === 1 && { nextCursor: "page-2" }),
    };
  })
  .onRequest(methods.agent.session.resume, ({ params }) => ({ modes: modes(openSession(params.sessionId, params.cwd)) }))
  .onRequest(methods.agent.session.close, ({ params }) => {
    sessions.delete(params.sessionId);
    return {};
  })
  .onRequest(methods.agent.session.delete, () => ({}))
  .onRequest(methods.agent.session.setMode, async ({ params: { sessionId, modeId }, client }) => {
    if (!["ask", "code"].includes(modeId)) throw RequestError.invalidParams({ modeId });
    sessionOf({ sessionId }).mode = modeId;
    const update = { sessionUpdate: "current_mode_update", currentModeId: modeId };
    await client.notify(methods.client.session.update, { sessionId, update });
    return {};
  })
  .onRequest(methods.agent.session.setConfigOption, ({ params }) => {
    const session = sessionOf(params);
    session.config[params.configId] = params.value;
    return { configOptions: configOptions(session) };
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client, signal }) => {
    const stopReason = await new Turn(client, sessionOf(params), params, signal).run();
    return { stopReason: stopReason ?? "end_turn" };
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => sessionOf(params).stop("cancelled"))
  .onRequest("_interop/echo", asIs, ({ params }) => ({ by: "agent", echo: params }))
  .onRequest("_interop/ended", asIs, async ({ params }) => ({ ended: await sessionOf(params).ended }))
  .onRequest("_interop/diagnostics", asIs, () => ({ diagnostics: [] }))
  .onNotification("_interop/note", asIs, ({ params }) => {
    sessionOf(params).notes.push(["interop/note", params.note]);
  })
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
