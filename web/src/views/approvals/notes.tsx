/** Pilothouse's own notes about a request, shown apart from the agent's text. */
import { shortenBlock } from "../../text/shorten";
import { Icon } from "../../ui/icon";
import { Sentence, WithGap } from "./hidden";

/** How much of the lines behind a sentence is shown, as of a difference between two texts. */
const LIMITS = { lines: 100, characters: 10_000 };

export function HubNotes({ notes }: { notes: readonly string[] }) {
  if (!notes.length) return null;
  return (
    <div
      class="ask-notes"
      role="group"
      aria-label="Notes from Pilothouse"
      tabIndex={notes.some((note) => note.includes("\n")) ? 0 : undefined}
    >
      <p class="ask-notes-from tiny">
        <Icon name="warning" size={12} /> Pilothouse
      </p>
      <ul>
        {notes.map((note, place) => (
          <Note key={place} text={note} />
        ))}
      </ul>
    </div>
  );
}

function Note({ text }: { text: string }) {
  const [sentence = "", ...lines] = text.split("\n");
  return (
    <li>
      <Sentence text={sentence} />
      {lines.length > 0 && (
        <pre>
          <WithGap {...shortenBlock(lines.join("\n"), LIMITS)} />
        </pre>
      )}
    </li>
  );
}

/** Shown if the agent did not ask, and Pilothouse asks about its act. */
export const HubOrigin = () => <span class="chip wait">Asked by Pilothouse</span>;
