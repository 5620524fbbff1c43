/** What was said: people on the right and tinted, the agent plainly, in Markdown as it arrives. */
import { useState } from "preact/hooks";
import type { Message, MessageContent, ResourceContent } from "../../model/wire.gen";
import { Copy } from "../../ui/copy";
import { moment } from "../../ui/time";
import { Content } from "../text/content";
import { useFold } from "../text/fold";
import { follow } from "../text/links";
import { StreamedMarkdown } from "../text/markdown";
import { useVersion } from "../text/source";

export function MessageView({ message }: { message: Message }) {
  useVersion(message);
  if (!message.content.some(isThere)) return null;
  if (message.role === "user") return <UserMessage message={message} />;
  return message.role === "system" ? <SystemMessage message={message} /> : <AgentMessage message={message} />;
}

/** Calls and their results have cards of their own. */
const isThere = (block: MessageContent): boolean =>
  block.type === "text" ? block.text.trim() !== "" : block.type !== "tool_use" && block.type !== "tool_result";

const textOf = (message: Message): string =>
  message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n");

// -- people -----------------------------------------------------------------------------------------------------------

/** What is longer is folded. */
const LETTERS = 1200;
const LINES = 14;

function UserMessage({ message }: { message: Message }) {
  useVersion(message);
  const pieces = sentenceOf(message);
  const text = pieces.map((piece) => (typeof piece === "string" ? piece : `@${nameOf(piece)}`)).join("");
  const others = message.content.filter((block) => block.type !== "text" && !isMention(block) && isThere(block));
  const long = text.length > LETTERS || text.split("\n", LINES + 1).length > LINES;
  const [open, toggle] = useFold(message);
  return (
    <div class="said said-user">
      <div class="said-bubble" title={moment(message.timestamp)}>
        {others.length > 0 && (
          <div class="said-attached">
            {others.map((block, at) => (
              <Content key={at} block={block} />
            ))}
          </div>
        )}
        {text.trim() && (
          <p class={`said-text${long && !open ? " said-folded" : ""}`}>
            {pieces.map((piece, at) => (typeof piece === "string" ? piece : <Mention key={at} file={piece} />))}
          </p>
        )}
        {long && (
          <button type="button" class="more" aria-expanded={open} onClick={toggle}>
            {open ? "Show less" : "Show all"}
          </button>
        )}
      </div>
      {text.trim() && (
        <div class="said-tools">
          <Copy text={text} label="Copy message" />
        </div>
      )}
    </div>
  );
}

/** A file that was named in the middle of a sentence; one that came with its bytes was attached. */
const isMention = (block: MessageContent): block is ResourceContent =>
  block.type === "resource" && block.text === undefined && !block.blob && block.uri.startsWith("file:");

/** What was typed, with the files that it names in their places. Texts with nothing between them are paragraphs. */
function sentenceOf({ content }: Message): (string | ResourceContent)[] {
  const pieces: (string | ResourceContent)[] = [];
  for (const block of content) {
    if (isMention(block)) pieces.push(block);
    else if (block.type === "text") pieces.push(typeof pieces.at(-1) === "string" ? `\n\n${block.text}` : block.text);
  }
  return pieces;
}

const nameOf = ({ name, uri }: ResourceContent): string => name || uri.slice(uri.lastIndexOf("/") + 1);

function Mention({ file }: { file: ResourceContent }) {
  return (
    <a
      class="said-mention"
      role="link"
      tabIndex={0}
      data-path={file.uri.replace(/^file:\/\//, "")}
      title={file.uri}
      onClick={follow}
      onKeyDown={(event) => event.key === "Enter" && follow(event)}
    >
      @{nameOf(file)}
    </a>
  );
}

// -- the agent --------------------------------------------------------------------------------------------------------

/** Characters of a message that nobody copies by a button where there is no pointer to bring it up. */
const SHORT = 240;

function AgentMessage({ message }: { message: Message }) {
  const last = message.content.length - 1;
  const short = message.done && textOf(message).length < SHORT;
  return (
    <div class={`said said-agent${short ? " said-short" : ""}`}>
      {message.content.map((block, at) =>
        block.type === "text" ? (
          <StreamedMarkdown key={at} item={message} text={block.text} live={!message.done && at === last} />
        ) : isThere(block) ? (
          <Content key={at} block={block} />
        ) : null,
      )}
      {message.done && message.content.some((block) => block.type === "text" && isThere(block)) && (
        <div class="said-tools">
          <Copy text={() => textOf(message)} label="Copy message" />
          <time class="muted tiny" dateTime={message.timestamp} title={moment(message.timestamp)}>
            {clock(message.timestamp)}
          </time>
        </div>
      )}
    </div>
  );
}

// making one costs more than a whole message
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

/** `14:05`. */
export function clock(timestamp: string): string {
  const then = new Date(timestamp);
  if (Number.isNaN(then.getTime())) return "";
  return CLOCK.format(then);
}

// -- the agent's program ----------------------------------------------------------------------------------------------

function SystemMessage({ message }: { message: Message }) {
  useVersion(message);
  const [open, setOpen] = useState(false);
  const text = textOf(message);
  return (
    <div class="said said-system">
      <button type="button" class="more" aria-expanded={open} onClick={() => setOpen(!open)}>
        System message
      </button>
      {open ? <p class="said-text">{text}</p> : <span class="cut muted small">{text.slice(0, 200)}</span>}
    </div>
  );
}
