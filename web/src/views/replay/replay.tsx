/** A session played again: it is read from the hub first, and the way back to what happens now is always there. */
import { useEffect, useMemo } from "preact/hooks";
import { useHub } from "../../app/context";
import { Reading } from "../../app/reading";
import { nameOf } from "../../app/rows";
import { hrefOf } from "../../app/route";
import { Icon } from "../../ui/icon";
import { count } from "../../ui/time";
import { Followed } from "../files/followed";
import { Player } from "./player";

export function Replay({ id }: { id: string }) {
  const hub = useHub();
  const row = hub.row(id);
  const reading = useMemo(() => new Reading(id, hub.api, hub.ports.clock), [id, hub]);
  useEffect(() => {
    void reading.go(row?.seq);
    return () => reading.close();
  }, [reading]);
  const replay = reading.replay.value;
  const live = hrefOf({ view: "session", id });
  const back = (
    <a class="button" href={live}>
      Back to live
    </a>
  );
  const lead = (
    <a class="button quiet icon only-narrow" href={live} aria-label="Back to live">
      <Icon name="back" />
    </a>
  );
  if (replay) {
    return (
      <Player replay={replay} title={row && nameOf(row)} lead={lead}>
        <span class="only-wide">{back}</span>
        <Followed session={id} within={row?.cwd ?? ""} />
      </Player>
    );
  }
  return <Reader reading={reading} total={row?.seq} back={back} />;
}

interface ReaderProps {
  reading: Reading;
  total: number | undefined;
  back: preact.ComponentChildren;
}

function Reader({ reading, total, back }: ReaderProps) {
  const read = reading.read.value;
  const failed = reading.failed.value;
  if (failed !== null) {
    return (
      <div class="replay-reader" role="alert">
        <p>This session could not be read: {failed}</p>
        <div class="replay-ways">
          <button type="button" class="button primary" onClick={() => void reading.go(total)}>
            Try again
          </button>
          {back}
        </div>
      </div>
    );
  }
  return (
    <div class="replay-reader" aria-busy="true">
      <label>
        <span class="muted">Reading what happened{read > 0 && `: ${count(read)} events`}</span>
        <progress {...(total ? { value: read, max: total } : {})} />
      </label>
      {back}
    </div>
  );
}
