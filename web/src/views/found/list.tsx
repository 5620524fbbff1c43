/** Sessions that were begun elsewhere, and what can be done with them here. */
import { useEffect, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { type Found, type FoundSession, lookingOf, nameOfFound, wish } from "../../app/found";
import { Icon } from "../../ui/icon";
import { Menu } from "../../ui/menu";
import { useNow } from "../../ui/now";
import { ago, moment } from "../../ui/time";
import { wordsOf } from "../sessions/filter";
import { choicesFor } from "./choices";

/** Sessions that are shown at a time. */
const PAGE = 20;
/** Milliseconds; how long ago things were is told in minutes. */
const EVERY = 30_000;

export function FoundList({ text }: { text: string }) {
  const looking = lookingOf(useHub());
  useEffect(() => looking.follow(), [looking]);
  const [found, failed] = [looking.found.value, looking.failed.value];
  const [most, setMost] = useState(PAGE);
  const now = useNow(true, EVERY);
  if (failed) {
    return (
      <p class="session-note small" role="alert">
        What was begun elsewhere cannot be listed: {failed}.{" "}
        <button type="button" class="button quiet small" onClick={() => void looking.look(true)}>
          Try again
        </button>
      </p>
    );
  }
  if (!found) {
    return (
      <p class="session-note small muted" role="status">
        Looking…
      </p>
    );
  }
  const sessions = fitting(found.sessions, text);
  return (
    <>
      {sessions.length > 0 ? (
        <ul class="found-rows">
          {sessions.slice(0, most).map((one) => (
            <Row key={`${one.agent} ${one.id}`} found={one} now={now} />
          ))}
        </ul>
      ) : (
        <p class="session-note small muted">
          {text
            ? "Nothing that was begun elsewhere is called so."
            : "No agent was started here outside of the hub, as far as its records can be read."}
        </p>
      )}
      {sessions.length > most && (
        <button type="button" class="button quiet session-older" onClick={() => setMost(most + PAGE)}>
          Show more ({sessions.length - most})
        </button>
      )}
      <Problems found={found} />
    </>
  );
}

/** Those that are not in the list above already, and have the words. */
function fitting(sessions: readonly FoundSession[], text: string): FoundSession[] {
  const wanted = wordsOf(text);
  return sessions.filter((one) => {
    if (one.hubSessionId) return false;
    const all = `${nameOfFound(one)} ${one.agent} ${one.projectPath} ${one.lastMessage ?? ""} ${one.id}`.toLowerCase();
    return wanted.every((word) => all.includes(word));
  });
}

const STATUS: Readonly<Record<string, readonly [word: string, style: string]>> = {
  running: ["working", "work"],
  waiting: ["waits there", "wait"],
};

function Row({ found, now }: { found: FoundSession; now: number }) {
  const hub = useHub();
  const name = nameOfFound(found);
  const [word, style] = STATUS[found.status ?? ""] ?? (found.pid ? ["open there", ""] : ["", ""]);
  const [first, second, ...others] = choicesFor(hub, found);
  const busy = wish.value?.found.id === found.id;
  return (
    <li class="found-row">
      <div class="found-words">
        <span class="session-top">
          <bdi class="session-name cut" title={name}>
            {name}
          </bdi>
          <time class="session-ago tiny muted" dateTime={found.lastActivity} title={moment(found.lastActivity)}>
            {ago(found.lastActivity, now)}
          </time>
        </span>
        <span class="session-under tiny muted">
          <span class="cut">
            {found.agent} · <bdi title={found.projectPath}>{found.projectName}</bdi>
            {found.model && ` · ${found.model}`}
          </span>
          {word && <span class={`chip session-word ${style}`}>{word}</span>}
        </span>
        {found.lastMessage && found.lastMessage !== name && (
          <bdi class="found-last tiny muted cut">{found.lastMessage}</bdi>
        )}
      </div>
      {first && (
        <div class="found-ways" role="group" aria-label={`What to do with ${name}`}>
          {[first, second].map(
            (choice) =>
              choice && (
                <button
                  key={choice.label}
                  type="button"
                  class="button"
                  disabled={busy}
                  title={choice.about}
                  onClick={choice.run}
                >
                  {busy && wish.value?.how === choice.how ? `${choice.label}…` : choice.label}
                </button>
              ),
          )}
          <Menu label={`More for ${name}`} choices={() => others} />
        </div>
      )}
    </li>
  );
}

/** Records that cannot be read are no reason to disturb anybody who does not ask. */
function Problems({ found: { problems } }: { found: Found }) {
  if (!problems.length) return null;
  return (
    <details class="found-problems tiny muted">
      <summary>
        <Icon name="info" size={12} /> {problems.length === 1 ? "1 record" : `${problems.length} records`} cannot be
        read
      </summary>
      <ul>
        {problems.map(({ path, message }) => (
          <li key={path}>
            <bdi class="mono">{path}</bdi>: {message}
          </li>
        ))}
      </ul>
    </details>
  );
}
