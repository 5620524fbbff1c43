/** What would be done: the change, the command, or the agent's words. All of it can be seen before it is decided. */
import { useMemo, useState } from "preact/hooks";
import type { ApprovalRow } from "../../app/rows";
import type { DiffPreview } from "../../model/wire.gen";
import { Copy } from "../../ui/copy";
import { PreviewDiff } from "../diff/lazy";
import { Seen } from "./hidden";
import { below } from "./words";

/** What is shown of a text before somebody asks for the rest; its box scrolls, and says how much is below. */
const LINES = 400;
const LETTERS = 20_000;

export function Preview({ approval, cwd }: { approval: ApprovalRow; cwd: string | undefined }) {
  const { preview, toolInput, description } = approval.request;
  if (preview?.type === "diff") return <Change preview={preview} cwd={cwd} />;
  if (preview?.type === "command") return <Long text={preview.command} kind="command" />;
  const input = Object.keys(toolInput ?? {}).length ? JSON.stringify(toolInput, null, 2) : "";
  const said = preview?.text && preview.text !== description && preview.text !== approval.request.toolName;
  return (
    <>
      {said && <Long text={preview.text} kind="words" />}
      {input && (
        <details class="ask-input">
          <summary>What the tool is given</summary>
          <Long text={input} kind="command" />
        </details>
      )}
    </>
  );
}

function Change({ preview, cwd }: { preview: DiffPreview; cwd: string | undefined }) {
  const near = useMemo(() => ({ ...preview, path: below(preview.path, cwd) }), [preview, cwd]);
  return <PreviewDiff preview={near} first />;
}

function Long({ text, kind }: { text: string; kind: "command" | "words" }) {
  const [whole, setWhole] = useState(false);
  const lines = text.split("\n");
  const short = lines.slice(0, LINES).join("\n").slice(0, LETTERS);
  const cut = short.length < text.length;
  return (
    <div class={`ask-text ${kind}`}>
      <pre>
        <Seen text={whole || !cut ? text : `${short}…`} />
      </pre>
      {kind === "command" && <Copy text={text} label="Copy command" />}
      {cut && (
        <button type="button" class="button quiet ask-whole" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole
            ? "Show less"
            : `Show all (${lines.length > LINES ? `${lines.length} lines` : `${text.length} characters`})`}
        </button>
      )}
    </div>
  );
}
