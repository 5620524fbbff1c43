/** What became of Stop, until the turn has ended. */
import { useHub } from "../../app/context";
import { DEADLINE, type Stop, type Stopping } from "../../app/stopping";
import { Icon } from "../../ui/icon";
import { useNow } from "../../ui/now";

export function StopButton({ stopping }: { stopping: Stopping }) {
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
      onClick={() => stopping.press()}
    >
      <Icon name="stop" />
      {again && !stage.forced && <span>Force</span>}
    </button>
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
