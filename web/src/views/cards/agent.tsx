/** Work that was given to another agent: the task, what it did, what it came back with. */
import { isObject, textOf } from "../../model/json";
import type { ToolCall } from "../../model/wire.gen";
import { count } from "../../ui/time";
import { Seen } from "../approvals/hidden";
import { Markdown } from "../text/markdown";
import { useSource } from "../text/source";
import { Run } from "../transcript/run";
import { useFamily } from "./family";

export function Agent({ call }: { call: ToolCall }) {
  const source = useSource();
  const { children } = useFamily(call);
  void source.head.value; // sub-agents are no items: what becomes of them is told with the session
  const agent = source.session.value?.fields.subAgents.get(call.subAgentId ?? call.toolCallId);
  const task = (isObject(call.input) && textOf(call.input["prompt"])) || agent?.task || "";
  const result = agent?.result || call.output || "";
  const usage = agent?.tokenUsage;
  return (
    <div class="sub">
      {task && (
        <section>
          <p class="sub-title">Task</p>
          <Markdown text={task} />
        </section>
      )}
      {agent?.endedAt === undefined && agent?.message && (
        <p class="small">
          <Seen text={agent.message} />
          {agent.progress !== undefined && <progress class="sub-progress" max={100} value={agent.progress} />}
        </p>
      )}
      {children.length > 0 && (
        <div class="sub-steps">
          <Run steps={children} />
        </div>
      )}
      {result && (
        <section>
          <p class="sub-title">Result</p>
          <Markdown text={result.slice(0, 100_000)} />
        </section>
      )}
      {usage && (
        <p class="muted tiny">
          {count(usage.inputTokens)} tokens in, {count(usage.outputTokens)} out
        </p>
      )}
    </div>
  );
}
