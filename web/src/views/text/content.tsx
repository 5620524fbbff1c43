/** Blocks of a message that are no text: pictures, sounds, files. Nothing is fetched from anywhere else. */
import type { ComponentChildren } from "preact";
import type { ImageContent, Json, MessageContent, ResourceContent } from "../../model/wire.gen";
import { Icon, type IconName } from "../../ui/icon";
import { lazily } from "../../ui/lazy";
import { bytes } from "../../ui/time";
import { hostOf } from "./links";

const Json = lazily(() => import("../cards/json").then((module) => module.JsonTree));

const PICTURE = /^(?:data:image\/(?:png|jpeg|gif|webp|avif|bmp);base64,|blob:)/i;
const SOUND = /^(?:data:audio\/[\w.+-]+;base64,|blob:)/i;

export function Content({ block }: { block: MessageContent }) {
  switch (block.type) {
    case "text":
      return <p class="content-text">{block.text}</p>;
    case "image":
      return <Picture block={block} />;
    case "audio":
      return SOUND.test(block.url) ? (
        <audio class="content-audio" controls src={block.url} />
      ) : (
        <Away url={block.url} icon="play" word="sound" />
      );
    case "resource":
      return <Resource block={block} />;
    case "other":
      return <Folded icon="tool" title="Content of a kind that is not known here" value={block.block} />;
    default:
      return <Folded icon="tool" title={block.type} value={block as unknown as Json} />;
  }
}

function Picture({ block: { url } }: { block: ImageContent }) {
  if (!PICTURE.test(url)) return <Away url={url} icon="image" word="image" />;
  return <img class="content-image" src={url} alt="Picture" loading="lazy" decoding="async" />;
}

/** Something elsewhere: a link that one may follow, never a request that the page makes. */
function Away({ url, icon, word }: { url: string; icon: IconName; word: string }) {
  const safe = /^https?:\/\//i.test(url);
  const said = `${word}: ${safe ? `${hostOf(url)}${url.replace(/^[^/]*\/\/[^/]*/, "").slice(0, 60)}` : "not shown"}`;
  return safe ? (
    <a class="content-file" href={url} target="_blank" rel="noopener noreferrer">
      <Icon name={icon} size={14} />
      <span class="cut">{said}</span>
    </a>
  ) : (
    <span class="content-file">
      <Icon name={icon} size={14} />
      <span class="cut">{said}</span>
    </span>
  );
}

function Resource({ block }: { block: ResourceContent }) {
  const name = block.name || decoded(block.uri.split("/").at(-1) || block.uri);
  if (block.text !== undefined) {
    return (
      <Fold icon="file" title={name} aside={bytes(block.text.length)}>
        <pre class="content-source">{block.text}</pre>
      </Fold>
    );
  }
  if (/^https?:/i.test(block.uri)) return <Away url={block.uri} icon="link" word={name} />;
  const size = block.blob ? bytes(Math.floor((block.blob.length * 3) / 4)) : (block.mimeType ?? "");
  return (
    <span class="content-file" title={block.uri}>
      <Icon name="file" size={14} />
      <span class="cut">{name}</span>
      {size && <span class="muted tiny">{size}</span>}
    </span>
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function Folded({ icon, title, value }: { icon: IconName; title: string; value: Json }) {
  return (
    <Fold icon={icon} title={title}>
      <Json value={value} />
    </Fold>
  );
}

interface FoldProps {
  icon: IconName;
  title: string;
  aside?: string;
  children: ComponentChildren;
}

function Fold({ icon, title, aside, children }: FoldProps) {
  return (
    <details class="content-fold">
      <summary class="content-file">
        <Icon name={icon} size={14} />
        <span class="cut">{title}</span>
        {aside && <span class="muted tiny">{aside}</span>}
      </summary>
      {children}
    </details>
  );
}
