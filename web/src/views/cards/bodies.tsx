/** What is behind the line of a tool call, by its kind. Fetched when the first one is opened. */
import type { ComponentType } from "preact";
import type { GitOperation, ToolCall } from "../../model/wire.gen";
import { visible } from "../../text/highlight/odd";
import { Seen } from "../approvals/hidden";
import { useSource, useVersion } from "../text/source";
import { useFamily } from "./family";
import { Agent } from "./agent";
import { Generic } from "./generic";
import { countsOf, isDeclined, type Kind, kindOf, locationsOf, short } from "./kinds";
import { Changed } from "./changed";
import { Reading } from "./reading";
import { Found } from "./found";
import { Terminal } from "./terminal";
import { Web } from "./web";

const BODIES: Partial<Record<Kind, ComponentType<{ call: ToolCall }>>> = {
  bash: Terminal,
  git: Terminal,
  read: Reading,
  search: Found,
  list: Found,
  web: Web,
  agent: Agent,
  edit: Changed,
  delete: Changed,
  move: Changed,
};

export function Body({ call }: { call: ToolCall }) {
  useVersion(call);
  const View = BODIES[kindOf(call)] ?? Generic;
  return (
    <div class="call-body">
      <Failing call={call} />
      <View call={call} />
      {View !== Changed && countsOf(call) && <Changed call={call} />}
      {call.git?.map((operation, at) => (
        <GitLine key={at} operation={operation} />
      ))}
      <Places call={call} />
      <Risk call={call} />
    </div>
  );
}

/** What went wrong, unless the output says it already. */
function Failing({ call }: { call: ToolCall }) {
  const message = call.error?.message.trim();
  if (!message || isDeclined(call) || call.output?.includes(message)) return null;
  return (
    <p class="call-error">
      <Seen text={message.slice(0, 4000)} />
    </p>
  );
}

/** Kinds whose line does not say where they are. */
const PLACED: ReadonlySet<Kind> = new Set(["other", "mcp", "think", "agent", "mode"]);

function Places({ call }: { call: ToolCall }) {
  const cwd = useSource().session.peek()?.fields.workingDirectory ?? "";
  const places = locationsOf(call);
  if (!places.length || !PLACED.has(kindOf(call))) return null;
  return (
    <ul class="call-places" aria-label="Places">
      {places.slice(0, 30).map(({ path, line }, at) => (
        <li key={at} class="chip mono" title={visible(path)}>
          <Seen text={short(path, cwd)} />
          {line !== null && `:${line}`}
        </li>
      ))}
      {places.length > 30 && <li class="chip">and {places.length - 30} more</li>}
    </ul>
  );
}

function Risk({ call }: { call: ToolCall }) {
  const { unasked } = useFamily(call);
  const high = call.riskLevel === "high" || call.riskLevel === "critical";
  if (!call.riskReasons?.length || !(high || unasked)) return null;
  return (
    <div class="call-risk">
      {unasked && (
        <p>
          {unasked.said} Its risk is {call.riskLevel ?? "not known"}:
        </p>
      )}
      <ul>
        {call.riskReasons.map((reason, at) => (
          <li key={at}>
            <Seen text={reason} />
          </li>
        ))}
      </ul>
    </div>
  );
}

const GIT: { [Name in GitOperation["kind"]]: (operation: Extract<GitOperation, { kind: Name }>) => string } = {
  commit: ({ hash, message }) => `Committed${hash && ` ${hash.slice(0, 8)}`}: ${message.split("\n", 1)[0]}`,
  branch_create: ({ name, from }) => `Created branch ${name}${from ? ` from ${from}` : ""}`,
  branch_switch: ({ name }) => `Switched to branch ${name}`,
  pr_create: ({ number, title }) => `Opened pull request #${number}: ${title}`,
  push: ({ remote, branch }) => `Pushed ${branch} to ${remote}`,
  stash: ({ action }) => (action === "pop" ? "Took changes back from the stash" : "Put changes into the stash"),
};

function GitLine({ operation }: { operation: GitOperation }) {
  const say = GIT[operation.kind] as ((operation: GitOperation) => string) | undefined;
  return say ? (
    <p class="call-note">
      <Seen text={say(operation)} />
    </p>
  ) : null;
}
