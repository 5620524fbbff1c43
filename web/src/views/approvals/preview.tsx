/** A preview of the change, the command or the tool's arguments. All of it can be seen before the decision. */
import { useMemo, useState } from "preact/hooks";
import {
  commandAlone,
  environmentOf,
  otherArguments,
  otherDirectory,
  printArgument,
  relativePath,
} from "../../app/approvals";
import type { ApprovalRow } from "../../app/rows";
import type { JsonObject } from "../../model/json";
import type { CommandPreview, DiffPreview } from "../../model/wire.gen";
import { shortenBlock } from "../../text/shorten";
import { Copy } from "../../ui/copy";
import { PreviewDiff } from "../diff/lazy";
import { Seen, WithGap } from "./hidden";
import { isRisky } from "./risk";

/** How much of a text is shown before "Show all"; the box scrolls, and says how much is below. */
const LIMITS = { lines: 400, characters: 20_000 };
/** The same of one argument. */
const ARGUMENT_LIMITS = { lines: 24, characters: 1200 };
/** Arguments that have a row each; more of them are shown as JSON. */
const ROWS = 60;

interface Props {
  approval: ApprovalRow;
  cwd: string | undefined;
}

export function Preview({ approval, cwd }: Props) {
  const { preview } = approval.request;
  if (preview?.type === "diff") return <Change approval={approval} preview={preview} cwd={cwd} />;
  if (preview?.type === "command") return <Command approval={approval} preview={preview} cwd={cwd} />;
  return <Description approval={approval} />;
}

function Change({ approval: { request }, preview, cwd }: Props & { preview: DiffPreview }) {
  const near = useMemo(() => ({ ...preview, path: relativePath(preview.path, cwd) }), [preview, cwd]);
  return (
    <>
      <PreviewDiff preview={near} first />
      <Arguments input={otherArguments(request, cwd)} title="Other arguments" />
    </>
  );
}

/** The command, and everything that changes what it does: its directory, its variables, its other arguments. */
function Command({ approval, cwd }: Props & { preview: CommandPreview }) {
  const { request } = approval;
  const command = commandAlone(request);
  const directory = otherDirectory(request, cwd);
  const variables = environmentOf(request.toolInput);
  return (
    <>
      {directory && (
        <p class="ask-fact small">
          Working directory:{" "}
          <code>
            <Seen text={directory} />
          </code>
          {cwd !== undefined && <span class="ask-differs"> (not the session's)</span>}
        </p>
      )}
      {command && <LongText text={command} kind="command" />}
      {variables.length > 0 && (
        <div class="ask-fact small">
          Environment variables:
          <LongText text={variables.join("\n")} kind="list" />
        </div>
      )}
      <Arguments input={otherArguments(request)} title="Other arguments" />
    </>
  );
}

function Description({ approval: { request } }: Pick<Props, "approval">) {
  const { preview, toolName, description, riskLevel, riskReasons = [] } = request;
  const text = preview?.type === "description" ? preview.text : "";
  const isSaid = text === description || text === toolName || (isRisky(riskLevel) && riskReasons.includes(text));
  return (
    <>
      {text && !isSaid && <LongText text={text} kind="words" />}
      {toolName && toolName !== description && (
        <p class="ask-fact small">
          Tool:{" "}
          <code>
            <Seen text={toolName} />
          </code>
        </p>
      )}
      <Arguments input={otherArguments(request)} title="Arguments" />
    </>
  );
}

/** Arguments in the open, a row each: they are what is decided on. */
export function Arguments({ input, title }: { input: JsonObject | undefined; title: string }) {
  const entries = Object.entries(input ?? {});
  if (!entries.length) return null;
  return (
    <div class="ask-input" role="group" aria-label={title}>
      <p class="ask-fact small">{title}</p>
      <div class="ask-args">
        {entries.length > ROWS ? (
          <LongText text={JSON.stringify(input, null, 2)} kind="argument" />
        ) : (
          entries.map(([name, value]) => (
            <div key={name} class="ask-arg">
              <span class="ask-arg-name">
                <Seen text={name} />
              </span>
              <LongText text={printArgument(value)} kind="argument" limits={ARGUMENT_LIMITS} />
            </div>
          ))
        )}
        <Copy text={() => JSON.stringify(input, null, 2)} label="Copy arguments" />
      </div>
    </div>
  );
}

interface LongProps {
  text: string;
  kind: "command" | "words" | "list" | "argument";
  limits?: typeof LIMITS;
}

function LongText({ text, kind, limits = LIMITS }: LongProps) {
  const [whole, setWhole] = useState(false);
  const short = useMemo(() => shortenBlock(text, limits), [text, limits]);
  const lines = text.split("\n").length;
  return (
    <div class={`ask-text ${kind}`}>
      <pre>{whole ? <Seen text={text} /> : <WithGap {...short} />}</pre>
      {kind === "command" && <Copy text={text} label="Copy command" />}
      {short.characters > 0 && (
        <button type="button" class="button quiet ask-whole" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? "Show less" : `Show all (${lines > limits.lines ? `${lines} lines` : `${text.length} characters`})`}
        </button>
      )}
    </div>
  );
}
