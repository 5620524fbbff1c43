// Real processes as the terminals of a client on the TypeScript SDK: handlers for `terminal/*`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { RequestError } from "@agentclientprotocol/sdk";

export const notFound = (uri) => new RequestError(-32002, "Resource not found", { uri });

export class Terminals {
  #open = new Map();
  #env;

  constructor(env = {}) {
    this.#env = env; // what only commands in these terminals have in their environment
  }

  create({ command, args, env, cwd }) {
    const variables = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
    const child = spawn(command, args ?? [], {
      cwd: cwd ?? undefined,
      env: { ...process.env, ...this.#env, ...variables },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const terminal = { child, output: "", exited: once(child, "close") };
    child.stdout.setEncoding("utf8").on("data", (data) => (terminal.output += data));
    const terminalId = `terminal-${child.pid}`;
    this.#open.set(terminalId, terminal);
    return { terminalId };
  }

  output({ terminalId }) {
    const { child, output } = this.#find(terminalId);
    const done = child.exitCode !== null || child.signalCode !== null;
    const exitStatus = done ? { exitCode: child.exitCode, signal: child.signalCode } : null;
    return { output, truncated: false, exitStatus };
  }

  async waitForExit({ terminalId }) {
    const [exitCode, signal] = await this.#find(terminalId).exited;
    return { exitCode, signal };
  }

  kill({ terminalId }) {
    this.#find(terminalId).child.kill("SIGKILL");
  }

  async release({ terminalId }) {
    const { child, exited } = this.#find(terminalId);
    this.#open.delete(terminalId);
    child.kill("SIGKILL");
    await exited;
  }

  #find(terminalId) {
    const terminal = this.#open.get(terminalId);
    if (!terminal) throw notFound(terminalId);
    return terminal;
  }
}
