/** Markdown on the page: whole, or as it arrives. */
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { type Block, markdown, MarkdownStream } from "../../text/markdown/stream";
import type { SessionItem } from "../../model/wire.gen";
import { clean, readings } from "./cleaning";
import { useFed } from "./growing";
import { Sheet } from "./sheet";

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

function Blocks({ blocks }: { blocks: readonly Block[] }) {
  const place = useRef<HTMLDivElement>(null);
  const sheet = useRef<Sheet | null>(null);
  useLayoutEffect(() => {
    sheet.current ??= place.current && new Sheet(place.current);
    sheet.current?.show(blocks);
  }, [blocks]);
  useLayoutEffect(() => () => sheet.current?.close(), []);
  return <div ref={place} class="md" />;
}
