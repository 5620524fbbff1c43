/** Any other tool: what went in and what came out. */
import { filled } from "../../model/json";
import type { ToolCall } from "../../model/wire.gen";
import { useFamily } from "./family";
import { JsonTree } from "./json";
import { Output, unfenced } from "./output";
import { Run } from "../transcript/run";

export function Generic({ call }: { call: ToolCall }) {
  const { children } = useFamily(call);
  const output = unfenced(call.output ?? "");
  const input = filled(call.input) ? call.input : undefined;
  return (
    <>
      {input !== undefined && (
        <section>
          <p class="sub-title">Input</p>
          <JsonTree value={input} />
        </section>
      )}
      {input === undefined && call.args && <Output text={call.args} label="Input" />}
      {children.length > 0 && (
        <div class="sub-steps">
          <Run steps={children} />
        </div>
      )}
      {output.trim() && (
        <section>
          <p class="sub-title">Output</p>
          <Output text={output} />
        </section>
      )}
      {input === undefined && !call.args && !output.trim() && !children.length && (
        <p class="muted small">Nothing more is known of it.</p>
      )}
    </>
  );
}
