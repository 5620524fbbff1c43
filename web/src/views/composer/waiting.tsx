/** Prompts that wait for the running turn, and those on their way to the hub. */
import { cancelQueued, moveQueued, picturesIn, wordsOf } from "../../app/commands";
import { useHub, useOpen } from "../../app/context";
import type { Outgoing } from "../../app/outbox";
import type { Queued } from "../../app/queue";
import { attempt } from "../../app/toasts";
import { Icon, type IconName } from "../../ui/icon";
import { useState } from "preact/hooks";

interface Props {
  list: readonly Queued[];
  /** The one that is in the field. */
  editing: string | null;
  edit(prompt: Queued): void;
}

export function Waiting({ list, editing, edit }: Props) {
  if (!list.length) return null;
  return (
    <details class="composer-queue" open>
      <summary class="small">
        {list.length === 1 ? "1 prompt waits" : `${list.length} prompts wait`} for this turn to end
      </summary>
      <ol>
        {list.map((prompt, place) => (
          <Row
            key={prompt.promptId}
            prompt={prompt}
            place={place}
            count={list.length}
            editing={prompt.promptId === editing}
            edit={edit}
          />
        ))}
      </ol>
    </details>
  );
}

interface RowProps {
  prompt: Queued;
  place: number;
  count: number;
  editing: boolean;
  edit(prompt: Queued): void;
}

function Row({ prompt, place, count, editing, edit }: RowProps) {
  const hub = useHub();
  const { id } = useOpen();
  const [busy, setBusy] = useState(false);
  const { promptId, content } = prompt;
  const may = hub.may("prompt");
  const act = async (what: string, command: () => Promise<unknown>) => {
    setBusy(true);
    await attempt(what, command);
    setBusy(false);
  };
  const button = (name: string, icon: IconName, off: boolean, press: () => void) => (
    <button
      type="button"
      class="button quiet icon"
      aria-label={name}
      title={name}
      disabled={busy || off}
      onClick={press}
    >
      <Icon name={icon} size={14} />
    </button>
  );
  const move = (to: number) => () => void act("It was not moved", () => moveQueued(hub, id, promptId, to));
  const pictures = picturesIn(content).length;
  return (
    <li class={editing ? "editing" : ""} aria-busy={busy}>
      <span class="composer-words">
        {wordsOf(content)}
        {pictures > 0 && <span class="muted"> ({pictures === 1 ? "1 picture" : `${pictures} pictures`})</span>}
      </span>
      {may && (
        <span class="composer-acts">
          {count > 1 && button("Earlier", "up", place === 0, move(place - 1))}
          {count > 1 && button("Later", "down", place === count - 1, move(place + 1))}
          {button(editing ? "In the field below" : "Edit", "edit", editing, () => edit(prompt))}
          {button(
            "Remove",
            "cross",
            false,
            () => void act("It was not removed", () => cancelQueued(hub, id, promptId)),
          )}
        </span>
      )}
    </li>
  );
}

export function Sending({ list }: { list: readonly Outgoing[] }) {
  const live = useHub().status.value.phase;
  if (!list.length) return null;
  const away = live !== "live" && live !== "catching_up";
  return (
    <ul class="composer-sending" aria-live="polite">
      {list.map((one) => (
        <li key={one.id}>
          <span class="composer-words">{one.text || "Picture"}</span>
          <span class="tiny muted">
            {one.turnId !== null ? "Sent" : away ? "Goes when the hub is reached again" : "Sending…"}
          </span>
        </li>
      ))}
    </ul>
  );
}
