/**
 * Code as it is shown everywhere: plain at once, in colours a moment later, folded when it is long.
 *
 * While a text grows it is not coloured again: lines that stayed keep their colours, new ones are plain until the text
 * has rested.
 */
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { colourable, colours } from "../../text/highlight/queue";
import { visible } from "../../text/highlight/odd";
import type { Line } from "../../text/highlight/spans";
import { Copy } from "../../ui/copy";
import { Chunk, Still } from "./chunk";
import { LineText } from "./line";
import { CHUNK, type Chunks, chunked } from "./lines";
import { useNear } from "./near";

interface Props {
  text: string;
  /** A name that highlight.js knows, or what stands behind a fence. */
  language?: string | undefined;
  startLine?: number;
  lineNumbers?: boolean;
  /** Lines that are shown before somebody asks for all; a few more are shown as well rather than folded. */
  limit?: number;
  /** More is coming. */
  open?: boolean;
  /** Without language and copy button, for a place that has its own. */
  bare?: boolean;
}

const LIMIT = 200;
/** How long a text must have stayed as it is before it is coloured. */
const REST = 300;
/** Folding fewer lines than this saves nobody anything. */
const SLACK = 5;
/** Lines of code beyond which it is folded where nobody says otherwise. */
export const FOLDED = LIMIT + SLACK;

export function Code(props: Props) {
  const { text, language = "", startLine = 1, lineNumbers = false, limit = LIMIT, open = false, bare = false } = props;
  const [all, setAll] = useState(false);
  const ref = useRef<HTMLElement>(null);
  const memory = useRef<Chunks | undefined>(undefined);
  const { chunks, count } = (memory.current = chunked(text, memory.current));
  const near = useNear(ref);
  const spans = useColours(text, language, near && !open);
  const folded = !all && count > limit + SLACK;
  const shown = folded ? cut(chunks, limit) : chunks;
  const start = lineNumbers ? startLine : undefined;
  const digits = String(startLine + count - 1).length;
  return (
    <figure
      ref={ref}
      class={`code${lineNumbers ? " code-numbered" : ""}`}
      style={lineNumbers ? { "--code-digits": digits } : undefined}
    >
      {!bare && (
        <figcaption class="code-head">
          <span class="cut">{visible(language) || "text"}</span>
          <Copy text={text} label="Copy code" />
        </figcaption>
      )}
      <pre class="code-body" tabIndex={0} role="group" aria-label={`Code${language && `, ${visible(language)}`}`}>
        <code>
          {shown.map((lines, index) => (
            <Chunk key={index} rows={lines.length} first={index === 0} class="code-chunk" tag="span">
              {() => (
                <Still on={[lines, start, spans]}>
                  {() => <Lines lines={lines} from={index * CHUNK} start={start} coloured={spans} />}
                </Still>
              )}
            </Chunk>
          ))}
        </code>
      </pre>
      {folded && (
        <button type="button" class="code-all" onClick={() => setAll(true)}>
          Show all {count.toLocaleString()} lines
        </button>
      )}
    </figure>
  );
}

function cut(chunks: Chunks["chunks"], limit: number): Chunks["chunks"] {
  const whole = Math.floor(limit / CHUNK);
  const rest = (chunks[whole] ?? []).slice(0, limit % CHUNK);
  return rest.length ? [...chunks.slice(0, whole), rest] : chunks.slice(0, whole);
}

interface LinesProps {
  lines: readonly string[];
  /** How many lines are before these. */
  from: number;
  /** The number of the first line of all; undefined where there are none. */
  start: number | undefined;
  coloured: Coloured | null;
}

interface Drawn {
  readonly line: string;
  readonly spans: Line | undefined;
  readonly number: number | undefined;
  readonly node: VNode;
}

/** A line that did not change is the very same node, which Preact passes over: texts grow by a few letters at a time. */
function Lines({ lines, from, start, coloured }: LinesProps) {
  const drawn = useRef<readonly Drawn[]>([]);
  const before = drawn.current;
  drawn.current = lines.map((line, at) => {
    const spans = coloured?.lines[from + at] === line ? coloured.spans[from + at] : undefined;
    const number = start === undefined ? undefined : start + from + at;
    const old = before[at];
    if (old && old.line === line && old.spans === spans && old.number === number) return old;
    return { line, spans, number, node: lineNode(at, line, spans, number) };
  });
  return <>{drawn.current.map(({ node }) => node)}</>;
}

const lineNode = (key: number, line: string, spans: Line | undefined, number: number | undefined): VNode => (
  <span key={key} class="code-line" data-line={number}>
    <LineText text={line.replace(/\r$/, "")} spans={spans} />
    {"\n"}
  </span>
);

interface Coloured {
  readonly lines: readonly string[];
  readonly spans: readonly Line[];
}

/** The colours of the text as it last rested; each holds as long as its line is the same. */
function useColours(text: string, language: string, wanted: boolean): Coloured | null {
  const [coloured, setColoured] = useState<Coloured | null>(null);
  const first = useRef(true);
  useEffect(() => {
    if (!wanted || !colourable(text, language)) return undefined;
    const stop = new AbortController();
    const ask = async () => {
      const spans = await colours(text, language, stop.signal);
      if (spans && !stop.signal.aborted) setColoured({ lines: text.split("\n"), spans });
    };
    const timer = setTimeout(() => void ask(), first.current ? 0 : REST);
    first.current = false;
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, language, wanted]);
  return coloured;
}

/** A block of code in Markdown, as `MarkdownStream` gives it. */
export function CodeBlock({ block }: { block: { lang: string; text: string; open: boolean } }) {
  return <Code text={block.text} language={block.lang} open={block.open} />;
}
