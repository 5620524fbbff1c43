/** An open session: its transcript, what it asks, and where one writes to it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { OpenContext, useHub, useOpen } from "../../app/context";
import { jump, takeJump } from "../../app/jump";
import { OpenSession } from "../../app/open";
import { opened } from "../../app/opening";
import { hrefOf } from "../../app/route";
import { seenBefore } from "../../app/unread";
import { Asks } from "../approvals/asks";
import { Composer } from "../composer/composer";
import { Followed } from "../files/followed";
import { Watched } from "../found/lazy";
import { useOffline } from "../sessions/offline";
import { Transcript } from "../transcript/transcript";
import { Bones } from "./bones";
import { Connection } from "./connection";
import { SessionHead } from "./head";
import { useRow } from "./row";

/** Followed for as long as it is shown. Another id is another view: give it as the key. */
export function SessionPage({ id }: { id: string }) {
  const open = useOpened(id);
  return open && <Shown open={open} />;
}

function useOpened(id: string): OpenSession | null {
  const hub = useHub();
  const [open, setOpen] = useState<OpenSession | null>(null);
  useEffect(() => {
    const session = new OpenSession(id, hub);
    opened.value = session;
    setOpen(session);
    return () => {
      session.close();
      if (opened.peek() === session) opened.value = null;
    };
  }, [id, hub]);
  return open;
}

function Shown({ open }: { open: OpenSession }) {
  const row = useRow(open.id);
  const gone = open.gone.value;
  const { times, ...place } = usePlace(open);
  return (
    <OpenContext.Provider value={open}>
      <SessionHead row={row} />
      <Connection />
      {gone ? (
        <div class="blank">
          <h2>This session is not here</h2>
          <p>{gone.code === "unknown_session" ? "It was deleted, or the link is of another hub." : gone.message}</p>
          <a class="button" href={hrefOf({ view: "sessions" })}>
            All sessions
          </a>
        </div>
      ) : (
        <>
          {open.session.value ? <Transcript key={times} {...place} /> : <Unread />}
          <div class="foot">
            <Asks />
            {row === undefined ? null : row?.watched ? <Watched sessionId={open.id} /> : <Composer />}
          </div>
          <Ended />
          <Followed session={open.id} within={open.session.value?.fields.workingDirectory ?? ""} />
        </>
      )}
    </OpenContext.Provider>
  );
}

/** Where the transcript opens. Who looks for another place in what is open already gets it opened there. */
function usePlace({ id }: OpenSession) {
  const wanted = jump.value?.id === id;
  const last = useRef<{ times: number; foundSeq?: number; readSeq?: number | undefined }>({ times: 0 });
  return useMemo(() => {
    const seq = takeJump(id);
    const { times } = last.current;
    if (seq !== null) last.current = { times: times + 1, foundSeq: seq };
    else if (!times) last.current = { times: 1, readSeq: seenBefore(id) };
    return last.current;
  }, [id, wanted]);
}

/** Nothing of it is known here yet. */
function Unread() {
  if (useOffline()) {
    return (
      <div class="blank">
        <p>
          The hub is out of reach, and this session was not kept on this device. It is shown as soon as it can be read.
        </p>
      </div>
    );
  }
  return <Bones />;
}

const ENDS: Readonly<Record<string, string>> = { end_turn: "The agent has finished", error: "The agent failed" };

/** Says aloud that a turn ended while somebody was here; what is written meanwhile would be too much to hear. */
function Ended() {
  const open = useOpen();
  void open.head.value;
  const turn = open.session.value?.fields.turn;
  const seen = useRef<string | null>(null);
  if (turn?.open) seen.current = turn.turnId;
  const ended = turn && !turn.open && turn.turnId === seen.current;
  return (
    <p class="aside" role="status">
      {ended ? (ENDS[turn.stopReason ?? ""] ?? "The turn has ended") : ""}
    </p>
  );
}
