/** The part of the list that has what was begun elsewhere: folded until somebody wants to see it, and read only then. */
import { unfolded } from "../../app/found";
import { Icon } from "../../ui/icon";
import { lazily } from "../../ui/lazy";

const FoundList = lazily<{ text: string }>(() => import("./list").then((part) => part.FoundList));

/** `text`: what is looked for in the list. */
export function FoundSection({ text }: { text: string }) {
  const open = unfolded.value;
  return (
    <section class="found" aria-label="Found on this machine">
      <button
        type="button"
        class="found-head session-section"
        aria-expanded={open}
        onClick={() => (unfolded.value = !open)}
      >
        <Icon name={open ? "down" : "right"} size={12} />
        Found on this machine
      </button>
      {open && <FoundList text={text} />}
    </section>
  );
}
