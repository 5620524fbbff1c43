/** In place of the field for messages: this session is another program's, and what can be done about that. */
import { useEffect } from "preact/hooks";
import { useHub } from "../../app/context";
import { type FoundSession, lookingOf, watchedIn, wish } from "../../app/found";
import { Icon } from "../../ui/icon";
import { choicesFor } from "./choices";

export function Watched({ sessionId }: { sessionId: string }) {
  const hub = useHub();
  const looking = lookingOf(hub);
  useEffect(() => looking.follow(), [looking]);
  const all = looking.found.value;
  const found = all && watchedIn(all, sessionId);
  const busy = wish.value?.found.id === found?.id && wish.value !== null;
  return (
    <section class="watched" aria-label="This session is watched">
      <Icon name="info" />
      <p class="watched-words">
        <b>Watching.</b> {placeWords(found, all !== null, looking.failed.value)}
      </p>
      {found && (
        <div class="watched-ways">
          {choicesFor(hub, found, true).map((way) => (
            <button
              key={way.how}
              type="button"
              class={`button${way.danger ? " danger" : way.how === "resume" && !found.pid ? " primary" : ""}`}
              disabled={busy}
              title={way.about}
              onClick={way.run}
            >
              {busy && wish.value?.how === way.how ? `${way.label.replace("…", "")}…` : way.label}
            </button>
          ))}
        </div>
      )}
    </section>
  );
}

function placeWords(found: FoundSession | null, known: boolean, failed: string): string {
  if (failed) return `What can be done with it is not known: ${failed}.`;
  if (!known) return "What happens in the other program is shown here.";
  if (!found) return "Its record is not there any more, so nothing more comes.";
  if (found.pid) return `${found.agent} has it elsewhere (process ${found.pid}); what happens there is shown here.`;
  return `It was begun elsewhere with ${found.agent}. No program has it at the moment.`;
}
