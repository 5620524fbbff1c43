/** Sessions that agents keep on their own: shown so that one can go on where they are. */
import { useEffect, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { ago } from "../../ui/time";

export interface DiscoveredSession {
  id: string;
  agent: string;
  projectPath: string;
  projectName: string;
  lastActivity: string;
  lastMessage?: string | null;
  sessionName?: string | null;
}

const MOST = 30;

/** Nothing where there are none. `use`: begin a session with the same agent in the same directory. */
export function Discovered({ use }: { use(found: DiscoveredSession): void }) {
  const hub = useHub();
  const [found, setFound] = useState<DiscoveredSession[]>([]);
  useEffect(() => {
    // an extra: where it cannot be had, nothing is missed
    hub.api.get<{ sessions: DiscoveredSession[] }>("discovered").then(
      ({ sessions }) => setFound(sessions.slice(0, MOST)),
      () => {},
    );
  }, []);
  if (!found.length) return null;
  return (
    <details class="new-discovered">
      <summary>Sessions started outside Pilothouse ({found.length})</summary>
      <ul>
        {found.map((one) => (
          <li key={`${one.agent} ${one.id}`}>
            <p class="new-discovered-words">
              <bdi class="cut">{one.sessionName || one.lastMessage || one.projectName}</bdi>
              <span class="tiny muted cut">
                {one.agent} · <bdi title={one.projectPath}>{one.projectName}</bdi> · {ago(one.lastActivity)}
              </span>
            </p>
            <button type="button" class="button" onClick={() => use(one)}>
              New one there
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}
