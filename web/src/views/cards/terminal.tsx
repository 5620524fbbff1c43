/** A command and what it printed, in its colours: the end of it, and all when asked for. */
import { useState } from "preact/hooks";
import type { ToolCall } from "../../model/wire.gen";
import { plainText } from "../../text/ansi/screen";
import { Copy } from "../../ui/copy";
import { Seen } from "../approvals/hidden";
import { Ansi, FedScreen } from "../text/ansi";
import { useFed } from "../text/growing";
import { commandOf, exitOf } from "./kinds";
import { useVersion } from "../text/source";

/** Lines that are shown while it runs, and afterwards. */
const LIVE = 12;
const REST = 24;

export function Terminal({ call }: { call: ToolCall }) {
  useVersion(call);
  const [all, setAll] = useState(false);
  const running = call.status === "executing";
  const output = outputOf(call);
  const screen = useFed(call, output, running, () => new FedScreen());
  const lines = screen.lines();
  const limit = running ? LIVE : REST;
  const shown = all || lines.length <= limit + 3 ? lines : lines.slice(-limit);
  const command = commandOf(call);
  return (
    <div class="term">
      {command && (
        <div class="term-command">
          <span class="term-prompt" aria-hidden="true">
            $
          </span>
          <pre tabIndex={0}>
            <Seen text={command} />
          </pre>
          <Copy text={command} label="Copy command" />
        </div>
      )}
      {shown.length < lines.length && (
        <button type="button" class="more" onClick={() => setAll(true)}>
          Show all {(lines.length + screen.dropped).toLocaleString()} lines
        </button>
      )}
      {all && screen.dropped > 0 && (
        <p class="muted tiny">The first {screen.dropped.toLocaleString()} lines are not kept.</p>
      )}
      {shown.length > 0 ? (
        <div class={all ? "term-output term-all" : "term-output"} tabIndex={0} role="group" aria-label="Output">
          <Ansi lines={shown} gradually={all} />
          <div class="output-tools">
            <Copy text={() => plainText(output)} label="Copy output" />
          </div>
        </div>
      ) : (
        <p class="muted tiny term-none">{running ? "Nothing printed so far" : "It printed nothing"}</p>
      )}
      <Exit call={call} />
    </div>
  );
}

function Exit({ call }: { call: ToolCall }) {
  const exit = exitOf(call);
  // the line above says how it failed
  return exit === 0 ? <span class="chip ok">exit 0</span> : null;
}

function outputOf({ output, structured }: ToolCall): string {
  if (output || structured?.type !== "command_output") return output ?? "";
  const { stdout, stderr } = structured;
  return stdout && stderr && !stdout.endsWith("\n") ? `${stdout}\n${stderr}` : stdout + stderr;
}
