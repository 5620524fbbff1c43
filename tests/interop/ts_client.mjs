// The interop client on the TypeScript SDK: `node ts_client.mjs script.json agent...`.
// It takes the steps of the script, serves the agent real files and processes meanwhile, and prints one line of JSON.
// tests/e2e/test_interop.py writes the script and reads the report.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";
import { Terminals, notFound } from "./terminals.mjs";

const TIMEOUT = 10_000;
const [script, command, ...args] = process.argv.slice(2);
const steps = new Map(); // the step under way in each session
const terminals = new Terminals();
const asIs = (params) => params;

// -- the script --

async function take(agent, step) {
  const { method, params = {} } = step;
  const report = { updates: [], asked: [], notes: [], nested: [] };
  const entry = { step, report, agent, abort: new AbortController() };
  if (!steps.has(params.sessionId)) steps.set(params.sessionId, entry);
  let timer;
  const timeout = new Promise((resolve) => {
    timer = setTimeout(() => resolve((report.timeout = true)), TIMEOUT);
  });
  await Promise.race([timeout, call(entry, method, params)]);
  clearTimeout(timer);
  await entry.nested;
  if (steps.get(params.sessionId) === entry) steps.delete(params.sessionId);
  return report;
}

async function call({ report, agent, abort }, method, params) {
  try {
    if (method === "session/cancel" || "note" in params) {
      await agent.notify(method, params);
    } else {
      report.result = await agent.request(method, params, { cancellationSignal: abort.signal });
    }
  } catch (error) {
    report.error = { code: error.code, message: error.message, data: error.data };
  }
  // A response settles its promise at once, a notification reaches its handler some microtasks later.
  await setImmediate();
  report.at_return = report.updates.length;
}

async function nested(entry) {
  for (const step of entry.step.then) {
    if (step.method === "$/cancel_request") entry.abort.abort();
    else entry.report.nested.push(await take(entry.agent, step));
  }
}

// -- what the agent asks and tells --

function onUpdate({ params: { sessionId, update } }) {
  const entry = steps.get(sessionId);
  entry.report.updates.push(update);
  if (entry.step.on !== undefined && update.content?.text === entry.step.on) entry.nested = nested(entry);
}

async function onPermission({ params: { sessionId, toolCall, options }, agent }) {
  const { step, report } = steps.get(sessionId);
  report.asked.push([toolCall.toolCallId, options.map((option) => option.kind), report.updates.length]);
  if (step.permission === "cancel") {
    await agent.notify(methods.agent.session.cancel, { sessionId });
    return { outcome: { outcome: "cancelled" } };
  }
  const { optionId } = options.find((option) => option.kind === step.permission);
  return { outcome: { outcome: "selected", optionId } };
}

async function onRead({ params: { path, line, limit } }) {
  const content = await readFile(path, "utf8").catch(() => {
    throw notFound(path);
  });
  const lines = content.split(/(?<=\n)/);
  const start = (line ?? 1) - 1;
  return { content: lines.slice(start, limit == null ? undefined : start + limit).join("") };
}

function onCreate({ params }) {
  steps.get(params.sessionId).report.notes.push(["outputByteLimit", params.outputByteLimit ?? null]);
  return terminals.create(params);
}

// -- the program --

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const exited = once(child, "exit");
const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const reports = await client({ name: "interop-client" })
  .onNotification(methods.client.session.update, onUpdate)
  .onRequest(methods.client.session.requestPermission, onPermission)
  .onRequest(methods.client.fs.readTextFile, onRead)
  .onRequest(methods.client.fs.writeTextFile, ({ params }) => writeFile(params.path, params.content))
  .onRequest(methods.client.terminal.create, onCreate)
  .onRequest(methods.client.terminal.output, ({ params }) => terminals.output(params))
  .onRequest(methods.client.terminal.waitForExit, ({ params }) => terminals.waitForExit(params))
  .onRequest(methods.client.terminal.kill, ({ params }) => terminals.kill(params))
  .onRequest(methods.client.terminal.release, ({ params }) => terminals.release(params))
  .onRequest("_interop/echo", asIs, ({ params }) => ({ by: "client", echo: params }))
  .onNotification("_interop/note", asIs, ({ params }) => {
    steps.get(params.sessionId).report.notes.push(["interop/note", params.note]);
  })
  .connectWith(stream, async (agent) => {
    const taken = [];
    for (const step of JSON.parse(await readFile(script, "utf8"))) taken.push(await take(agent, step));
    return taken;
  });
child.stdin.end();
await exited;
console.log(JSON.stringify({ steps: reports, diagnostics: [], exit: child.exitCode }));
