/** What happened when, as a list to go by: for those who cannot hit a mark, or want to read what it is. */
import type { Mark, MarkKind } from "../../app/recording";
import type { ReplaySession } from "../../app/replay";
import { visible } from "../../text/highlight/odd";
import { Dialog } from "../../ui/dialog";
import { Icon, type IconName } from "../../ui/icon";
import { clock } from "../../ui/time";

const KINDS: Readonly<Record<MarkKind, { icon: IconName; name: string }>> = {
  prompt: { icon: "send", name: "Prompt" },
  approval: { icon: "shield", name: "Asked" },
  edit: { icon: "edit", name: "Changed" },
  error: { icon: "warning", name: "Failed" },
};
/** More than anybody reads; the time line has the rest. */
const MOST = 2000;

export function Contents({ replay, close }: { replay: ReplaySession; close(): void }) {
  const { marks } = replay.recording;
  const go = (mark: Mark) => {
    replay.goTo(mark.count);
    close();
  };
  return (
    <Dialog title="What happened when" kind="sheet" close={close}>
      {marks.length === 0 && <p class="muted">No prompt, approval, edit or error.</p>}
      <ol class="replay-contents">
        {marks.slice(0, MOST).map((mark) => (
          <li key={`${mark.kind}-${mark.count}`} data-kind={mark.kind}>
            <button type="button" class="button quiet" onClick={() => go(mark)}>
              <span class="replay-when">{clock(replay.recording.timeOf(mark.count))}</span>
              <Icon name={KINDS[mark.kind].icon} size={14} />
              <span class="aside">{KINDS[mark.kind].name}: </span>
              <span class="cut">{visible(mark.label) || KINDS[mark.kind].name}</span>
            </button>
          </li>
        ))}
      </ol>
      {marks.length > MOST && <p class="muted small">{(marks.length - MOST).toLocaleString()} more on the time line</p>}
    </Dialog>
  );
}
