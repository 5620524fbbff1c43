/** What became of Stop, until the turn has ended. */
import { useState } from "preact/hooks";
import { cancelQueued } from "../../app/commands";
import { useHub, useOpen } from "../../app/context";
import type { Queued } from "../../app/queue";
import { DEADLINE, type Stop, type Stopping } from "../../app/stopping";
import { attempt } from "../../app/toasts";
import { Icon } from "../../ui/icon";
import { useNow } from "../../ui/now";
import { Note } from "./note";

export function StopButton({ stopping, press }: { stopping: Stopping; press(): void }) {
  const stage = stopping.stage.value;
  if (stopping.turnId.value === null) return null;
  const again = stage !== null && !stage.failed;
  const name = !again ? "Stop" : stage.forced ? "Ending the agent" : "Stop now";
  return (
    <button
      type="button"
      class={`button composer-stop ${again ? "danger" : ""} ${again && !stage.forced ? "" : "icon"}`}
      aria-label={name}
      aria-keyshortcuts="Escape"
      title={`${name} (Esc)`}
      disabled={again && stage.forced}
      onClick={press}
    >
      <Icon name="stop" />
      {again && !stage.forced && <span>Force</span>}
    </button>
  );
}

interface NextProps {
  /** Prompts that still wait. */
  list: readonly Queued[];
  close(): void;
}

/** A stop ends one turn: whoever has queued prompts is told that the next one runs, and can take them back. */
export function StopNext({ list, close }: NextProps) {
  const hub = useHub();
  const { id } = useOpen();
  const [busy, setBusy] = useState(false);
  const clear = async () => {
    setBusy(true);
    const done = await attempt("Not all of them were removed", async () => {
      for (const { promptId } of list) await cancelQueued(hub, id, promptId);
    });
    setBusy(false);
    if (done) close();
  };
  if (!list.length) return <Note close={close}>Stop ends one turn only: the prompt that waited runs now.</Note>;
  const count = list.length === 1 ? "1 queued prompt runs" : `${list.length} queued prompts run`;
  return (
    <Note close={close}>
      Stop ends one turn only: {count} next.{" "}
      <button type="button" class="button" disabled={busy} onClick={() => void clear()}>
        {busy ? "Removing…" : list.length === 1 ? "Remove it" : "Remove them"}
      </button>
    </Note>
  );
}

export function StopStage({ stopping }: { stopping: Stopping }) {
  const phase = useHub().status.value.phase;
  const stage = stopping.stage.value;
  const now = useNow(stage !== null);
  if (!stage) return null;
  const away = phase !== "live" && phase !== "catching_up";
  return (
    <p class={`composer-note small ${stage.failed ? "bad" : ""}`} role="status">
      {stageWords(stage, now, away)}
    </p>
  );
}

function stageWords({ failed, forced, since }: Stop, now: number, away: boolean): string {
  if (failed) return `Not stopped: ${failed}. Press again.`;
  if (away) return "Stopping as soon as the hub is reached again…";
  if (forced) return "Ending the agent…";
  const left = Math.ceil(DEADLINE - (now - since) / 1000);
  const then = left > 0 ? `The hub ends the agent in ${left} s if it does not stop.` : "The hub is ending the agent.";
  return `Stopping… press again to force. ${then}`;
}
