// An editor on the TypeScript SDK that does as it is told: `node editor_client.mjs agent...`.
//
// Lines on its stdin: {id, method, params} is asked, {method, params} is told, {choose} is the kind of option to choose
// from now on (null: none, the question stays open), {buffer: [path, text]} is a file as it is in the editor, unsaved.
// Lines on its stdout: {id, result | error}, {sessionId, update}, {asked}, {withdrawn}, {served}.
// tests/support/foreign_clients.py speaks with it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";
import { Terminals, notFound } from "./terminals.mjs";

const [command, ...args] = process.argv.slice(2);
const print = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const buffers = new Map();
const terminals = new Terminals({ WHERE: "editor" });
let choose = null;

// -- what the agent asks --

function onPermission({ params: { toolCall, options }, signal }) {
  print({ asked: { toolCallId: toolCall.toolCallId, title: toolCall.title, kinds: options.map(({ kind }) => kind) } });
  const chosen = options.find(({ kind }) => kind === choose);
  if (chosen) return { outcome: { outcome: "selected", optionId: chosen.optionId } };
  return new Promise((resolve) => {
    const withdraw = () => {
      print({ withdrawn: toolCall.toolCallId });
      resolve({ outcome: { outcome: "cancelled" } });
    };
    if (signal.aborted) withdraw();
    else signal.addEventListener("abort", withdraw);
  });
}

async function read({ path, line, limit }) {
  const saved = () =>
    readFile(path, "utf8").catch(() => {
      throw notFound(path);
    });
  const lines = (buffers.get(path) ?? (await saved())).split(/(?<=\n)/);
  const start = (line ?? 1) - 1;
  return { content: lines.slice(start, limit == null ? undefined : start + limit).join("") };
}

async function write({ path, content }) {
  buffers.delete(path);
  await writeFile(path, content);
  return {};
}

const serving = (method, handle) => ({ params }) => {
  print({ served: method });
  return handle(params);
};

// -- what it is told to do --

async function act(agent, { id, method, params, ...rest }) {
  if ("choose" in rest) choose = rest.choose;
  else if ("buffer" in rest) buffers.set(...rest.buffer);
  else if (id === undefined) await agent.notify(method, params);
  else {
    const answer = await agent.request(method, params).then(
      (result) => ({ id, result }),
      ({ code, message, data }) => ({ id, error: { code, message, data } }),
    );
    // A response settles its promise at once, a notification reaches its handler some microtasks later.
    await setImmediate();
    print(answer);
  }
}

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const exited = once(child, "exit");
const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
print({ bridge: child.pid });
await client({ name: "editor-client" })
  .onNotification(methods.client.session.update, ({ params: { sessionId, update } }) => print({ sessionId, update }))
  .onRequest(methods.client.session.requestPermission, onPermission)
  .onRequest(methods.client.fs.readTextFile, serving("fs/read_text_file", read))
  .onRequest(methods.client.fs.writeTextFile, serving("fs/write_text_file", write))
  .onRequest(methods.client.terminal.create, serving("terminal/create", (params) => terminals.create(params)))
  .onRequest(methods.client.terminal.output, ({ params }) => terminals.output(params))
  .onRequest(methods.client.terminal.waitForExit, ({ params }) => terminals.waitForExit(params))
  .onRequest(methods.client.terminal.kill, ({ params }) => terminals.kill(params))
  .onRequest(methods.client.terminal.release, ({ params }) => terminals.release(params))
  .connectWith(stream, async (agent) => {
    for await (const line of createInterface({ input: process.stdin })) act(agent, JSON.parse(line));
  });
child.stdin.end();
const [code] = await exited;
process.exit(code ?? 1);
