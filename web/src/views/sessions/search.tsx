/** Search in what was said and done, in all sessions: found by the hub while somebody types. */
import { useEffect, useState } from "preact/hooks";
import { path, Refused } from "../../app/api";
import { useHub } from "../../app/context";
import type { Hub } from "../../app/hub";
import { words as said } from "../../app/hub";
import { jump } from "../../app/jump";
import { hrefOf } from "../../app/route";
import { nameOf, type SessionRow } from "../../app/rows";
import { marked, projectOf, unformatted, wordsOf } from "./filter";

interface Hit {
  sessionId: string;
  seq: number;
  type: string;
  snippet: string;
}

/** A session with places in it. `row` is null where it could not be read. */
interface Found {
  id: string;
  row: Pick<SessionRow, "title" | "cwd" | "agent"> | null;
  hits: Hit[];
}

interface State {
  text: string;
  found: Found[];
  /** Sessions with such a title that the list does not have (yet). */
  titled: SessionRow[];
  failed: string | null;
}

const PAUSE = 200;
const LEAST = 2;
const MOST_HITS = 40;
/** Places that are shown of one session. */
const EACH = 3;

export function useSearch(text: string): State | null {
  const hub = useHub();
  const [state, setState] = useState<State | null>(null);
  const wanted = text.trim();
  useEffect(() => {
    if (wanted.length < LEAST) return setState(null);
    let here = true;
    const timer = setTimeout(async () => {
      const found = await search(hub, wanted);
      if (here) setState(found);
    }, PAUSE);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [wanted]);
  return state;
}

async function search(hub: Hub, text: string): Promise<State> {
  const query = encodeURIComponent(text);
  try {
    const [{ hits }, { sessions }] = await Promise.all([
      hub.api.get<{ hits: Hit[] }>(`search?q=${query}&limit=${MOST_HITS}`),
      hub.api.get<{ sessions: SessionRow[] }>(`sessions?title=${query}&archived=all&limit=20`),
    ]);
    const titled = sessions.filter((row) => !hub.rows.peek()?.has(row.id));
    return { text, found: await grouped(hub, hits), titled, failed: null };
  } catch (error) {
    return { text, found: [], titled: [], failed: said(error) };
  }
}

async function grouped(hub: Hub, hits: readonly Hit[]): Promise<Found[]> {
  const groups = new Map<string, Hit[]>();
  for (const hit of hits) groups.set(hit.sessionId, [...(groups.get(hit.sessionId) ?? []), hit]);
  return Promise.all(
    [...groups].map(async ([id, all]) => ({ id, row: await rowOf(hub, id), hits: all.slice(0, EACH) })),
  );
}

async function rowOf(hub: Hub, id: string): Promise<Found["row"]> {
  const known = hub.row(id);
  if (known) return known;
  return hub.api.get<SessionRow>(`${path("sessions", id)}?items=false`).catch((error: unknown) => {
    if (error instanceof Refused) return null;
    throw error;
  });
}

/** What was found in the conversations. */
export function Hits({ text, state }: { text: string; state: State | null }) {
  if (text.trim().length < LEAST) return null;
  const late = state?.text !== text.trim();
  return (
    <section class="session-hits" aria-label="Found in conversations" aria-busy={late}>
      <h2 class="session-section tiny">In conversations</h2>
      {state?.failed && <p class="session-note small">The search failed: {state.failed}. Type again to repeat it.</p>}
      {!state && <p class="session-note small muted">Searching…</p>}
      {state && !late && !state.failed && !state.found.length && (
        <p class="session-note small muted">Nothing was said or done with these words.</p>
      )}
      {state?.found.map((one) => (
        <Group key={one.id} found={one} words={wordsOf(state.text)} />
      ))}
    </section>
  );
}

function Group({ found: { id, row, hits }, words }: { found: Found; words: string[] }) {
  return (
    <article class="session-hit">
      <p class="session-hit-name small">
        <bdi class="cut">{row ? nameOf(row) : id}</bdi>
        {row && <span class="session-hit-place tiny muted cut">{projectOf(row.cwd)}</span>}
      </p>
      {hits.map((hit) => (
        <a
          key={hit.seq}
          class="session-snippet small"
          href={hrefOf({ view: "session", id })}
          onClick={() => (jump.value = { id, seq: hit.seq })}
        >
          <span>
            {marked(unformatted(hit.snippet), words).map((piece, at) =>
              piece.hit ? <mark key={at}>{piece.text}</mark> : piece.text,
            )}
          </span>
        </a>
      ))}
    </article>
  );
}
