/** What the agent thought: one line, and all of it when asked for. */
import { millisecondsBetween } from "../../model/summary";
import type { Thought } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { lasting } from "../../ui/time";
import { Content } from "../text/content";
import { useFold } from "../text/fold";
import { StreamedMarkdown } from "../text/markdown";
import { useMoment, useVersion } from "../text/source";

export function ThoughtLine({ thought }: { thought: Thought }) {
  useVersion(thought);
  const [open, toggle] = useFold(thought);
  const empty = !thought.text.trim() && !thought.content?.length;
  if (empty && thought.done && !thought.redacted) return null;
  return (
    <div class={`thought${open ? " thought-open" : ""}${thought.done ? "" : " thought-live"}`}>
      <button type="button" class="call-head thought-head" aria-expanded={open} disabled={empty} onClick={toggle}>
        <span class="call-icon">
          <Icon name="think" size={15} />
        </span>
        <span class="call-line">
          <span class="call-verb">
            <Span thought={thought} />
          </span>{" "}
          <span class="call-about">{open ? "" : words(thought)}</span>
        </span>
        {!empty && (
          <span class="call-turn">
            <Icon name="right" size={12} />
          </span>
        )}
      </button>
      {open && (
        <div class="thought-body">
          <StreamedMarkdown item={thought} text={thought.text} live={!thought.done} />
          {thought.content?.map((block, at) => (
            <Content key={at} block={block} />
          ))}
        </div>
      )}
    </div>
  );
}

function Span({ thought }: { thought: Thought }) {
  useVersion(thought);
  const now = useMoment(!thought.done);
  if (thought.redacted) return <>Thought, not shown by the provider</>;
  if (!thought.done) return <>Thinking{elapsed(thought, now)}</>;
  const took = thought.endedAt ? millisecondsBetween(thought.timestamp, thought.endedAt) : 0;
  return <>{took >= 2000 ? `Thought for ${lasting(took)}` : "Thought"}</>;
}

function elapsed(thought: Thought, now: number): string {
  const seconds = Math.floor((now - Date.parse(thought.timestamp)) / 1000);
  return seconds >= 2 ? ` for ${lasting(seconds * 1000)}` : "";
}

/** The first words of one that is over; the last ones of one that goes on. */
function words({ text, done }: Thought): string {
  const piece = done ? text.slice(0, 200) : text.slice(-160);
  const line = piece
    .replace(/[*_`#>]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
  return done || text.length <= 160 ? line : `…${line.replace(/^\S*\s/, "")}`;
}
