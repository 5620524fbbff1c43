/**
 * Markdown on the page: whole, or as it arrives.
 *
 * A block that did not change is not drawn again, and neither is a page of blocks in which nothing changed; so what a
 * piece of text costs does not depend on how long the message is. HTML comes only from the Markdown blocks, which are
 * harmless before they get here.
 */
import { sanitisedHtml } from "../../app/trusted";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { type Block, markdown, MarkdownStream } from "../../text/markdown/stream";
import type { SessionItem } from "../../model/wire.gen";
import { CodeBlock } from "../code/code";
import { colourWithin } from "../code/within";
import { clean, readings } from "./cleaning";
import { useFed } from "./growing";
import { finish } from "./links";
import { memo } from "./memo";

class FedMarkdown extends MarkdownStream {
  feed(text: string): void {
    this.append(text);
  }
}

/** A text that is complete. */
export function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => markdown(text, clean), [text, readings.value]);
  return <Blocks blocks={blocks} />;
}

interface Props {
  item: SessionItem;
  text: string;
  live: boolean;
}

/** A text of an item, which grows while `live`. */
export const StreamedMarkdown = (props: Props) => <Streamed key={readings.value} {...props} />;

function Streamed({ item, text, live }: Props) {
  const stream = useFed(item, text, live, () => new FedMarkdown(clean));
  if (!live) stream.end();
  return <Blocks blocks={stream.blocks()} />;
}

const PAGE = 24;

function Blocks({ blocks }: { blocks: readonly Block[] }) {
  const before = useRef<readonly (readonly Block[])[]>([]);
  const pages = (before.current = pagesOf(blocks, before.current));
  return (
    <div class="md">
      {pages.map((page, at) => (
        <Page key={at} blocks={page} />
      ))}
    </div>
  );
}

/** Pages in which nothing changed stay the same objects. */
function pagesOf(blocks: readonly Block[], before: readonly (readonly Block[])[]): readonly (readonly Block[])[] {
  return Array.from({ length: Math.ceil(blocks.length / PAGE) }, (_, at) => {
    const from = at * PAGE;
    const size = Math.min(PAGE, blocks.length - from);
    const old = before[at];
    if (old?.length === size && old.every((block, index) => block === blocks[from + index])) return old;
    return blocks.slice(from, from + size);
  });
}

const Page = memo(({ blocks }: { blocks: readonly Block[] }) => (
  <div class="md-page">
    {blocks.map((block) =>
      block.kind === "html" ? <Html key={block.key} block={block} /> : <Fence key={block.key} block={block} />,
    )}
  </div>
));

const Fence = memo(({ block }: { block: Block & { kind: "code" } }) => (
  <div class="md-block md-code">
    <CodeBlock block={block} />
  </div>
));

const Html = memo(({ block }: { block: Block & { kind: "html" } }) => {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (ref.current) finish(ref.current);
  }, [block]);
  useEffect(() => (ref.current ? colourWithin(ref.current) : undefined), [block]);
  return <div ref={ref} class="md-block" dir="auto" dangerouslySetInnerHTML={{ __html: sanitisedHtml(block.html) }} />;
});
