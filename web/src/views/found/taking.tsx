/**
 * What somebody wants to do with a session that was begun elsewhere, carried out: the hub's refusal with the choices it
 * names, and a question before a program is ended.
 */
import { useEffect, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { carryOut, type Held, type How, nameOfFound, type Wish, wish } from "../../app/found";
import { go } from "../../app/route";
import { toast } from "../../app/toasts";
import { Dialog } from "../../ui/dialog";
import { moment } from "../../ui/time";
import { WORDS } from "./choices";

const FAILED: Readonly<Record<How, string>> = {
  watch: "It cannot be watched",
  resume: "It cannot be continued",
  fork: "It cannot be forked",
  take_over: "It cannot be taken over",
};

export function Taking({ wanted }: { wanted: Wish }) {
  const hub = useHub();
  const [held, setHeld] = useState<Held | null>(null);
  const [doing, setDoing] = useState<How | null>(null);
  const [sure, setSure] = useState(wanted.how === "take_over");
  const pid = held?.pid ?? wanted.found.pid ?? null;
  const close = () => (wish.value = null);
  const act = async (how: How) => {
    setDoing(how);
    const done = await carryOut(hub, { ...wanted, how }, how === "take_over" ? pid : null);
    setDoing(null);
    if ("held" in done) {
      setHeld(done.held);
      setSure(false);
      return;
    }
    close();
    if ("row" in done) go({ view: "session", id: done.row.id });
    else toast(`${FAILED[how]}: ${done.failed}`, "failed");
  };
  useEffect(() => {
    if (wanted.how !== "take_over") void act(wanted.how);
  }, []);
  if (sure)
    return <Sure wanted={wanted} pid={pid} busy={doing !== null} close={close} end={() => void act("take_over")} />;
  if (!held) return null;
  const choices = held.choices.filter((how) => how !== "take_over" || hub.may("approve"));
  return (
    <Dialog title="Somebody else has it" close={close}>
      <p class="dialog-words">
        <b>
          <bdi>{nameOfFound(wanted.found)}</bdi>
        </b>
        : {whoHas(held)}
      </p>
      <ul class="found-choices">
        {choices.map((how) => (
          <li key={how}>
            <button
              type="button"
              class={`button${how === "take_over" ? " danger" : ""}`}
              disabled={doing !== null}
              onClick={() => (how === "take_over" ? setSure(true) : void act(how))}
            >
              {doing === how ? `${WORDS[how].label}…` : WORDS[how].label}
            </button>
            <span class="small muted">{WORDS[how].about}</span>
          </li>
        ))}
      </ul>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={close}>
          Leave it
        </button>
      </footer>
    </Dialog>
  );
}

/** A program that can be ended is told in short; anything else is for the hub to say. */
function whoHas({ choices, pid, since, message }: Held): string {
  if (pid === null || !choices.includes("take_over")) return message;
  return `process ${pid} has it${since && `, since ${moment(since)}`}.`;
}

interface SureProps {
  wanted: Wish;
  pid: number | null;
  busy: boolean;
  close(): void;
  end(): void;
}

function Sure({ wanted: { found }, pid, busy, close, end }: SureProps) {
  return (
    <Dialog title="Take this session over?" close={close}>
      <p class="dialog-words">
        The program that has{" "}
        <b>
          <bdi>{nameOfFound(found)}</bdi>
        </b>{" "}
        now{pid !== null && ` (process ${pid})`} is ended. What it is doing stops there; what it has written stays. Then
        the session goes on here.
      </p>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={close}>
          Leave it
        </button>
        <button type="button" class="button danger" disabled={busy} onClick={end}>
          {busy ? "Taking over…" : "End it and take over"}
        </button>
      </footer>
    </Dialog>
  );
}
