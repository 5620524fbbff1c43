/**
 * Where one writes to the session: the field, what goes with it, what waits, and how the agent is set.
 *
 * What is typed is never lost: it is a draft until it is sent, on its way until the hub has it, and a draft again if the
 * hub refuses it.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { editQueued, mentionsIn, type Picture, picturesIn, promptOf, resume, wordsOf } from "../../app/commands";
import { useHub, useOpen } from "../../app/context";
import { type Draft, draftOf } from "../../app/drafts";
import { words } from "../../app/hub";
import { outboxOf } from "../../app/outbox";
import { Queue, type Queued } from "../../app/queue";
import { hrefOf } from "../../app/route";
import { useShortcuts } from "../../app/shortcuts";
import { Stopping } from "../../app/stopping";
import { attempt } from "../../app/toasts";
import type { Json, Message } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { leaveForCard } from "../approvals/focus";
import { Attached } from "./attached";
import { Controls } from "./controls";
import { useDropped } from "./drops";
import { Field } from "./field";
import { Files } from "./files";
import { Meter } from "./meter";
import { Note } from "./note";
import { policyWords } from "./policy";
import { StopButton, StopNext, StopStage } from "./stop";
import { Sending, Waiting } from "./waiting";

interface Editing {
  promptId: string;
  /** What was in the field before. */
  text: string;
  mentions: readonly string[];
  pictures: readonly Picture[];
}

export function Composer() {
  const open = useOpen();
  return <SessionComposer key={open.id} />;
}

function SessionComposer() {
  const hub = useHub();
  const open = useOpen();
  const draft = draftOf(open.id);
  const outbox = outboxOf(hub, open.id);
  const queue = useMemo(() => new Queue(open), [open]);
  const stopping = useMemo(() => new Stopping(open), [open]);
  const files = useMemo(() => new Files(hub, open.id), [hub, open]);
  const [editing, setEditing] = useState<Editing | null>(null);
  const [note, setNote] = useState("");
  const [reading, add] = useFiles(open.id, draft, setNote);
  const [busy, setBusy] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  useEffect(() => () => queue.close(), [queue]);

  void open.head.value;
  void open.items.value;
  const session = open.session.value;
  const waiting = queue.list.value;
  const status = session?.fields.status;
  const running = stopping.turnId.value !== null;
  // what it may do is not known before the hub has said it
  const watches = hub.me.value !== null && !hub.may("prompt");
  useEffect(() => {
    if (session) outbox.settle(session, waiting);
  });
  useEffect(() => {
    if (!editing || waiting.some(({ promptId }) => promptId === editing.promptId)) return;
    const [text, mentions, pictures] = [draft.text.value, draft.mentioned(), draft.pictures.value];
    leave();
    draft.restore(text, mentions, pictures);
    setNote("The prompt that you were editing has begun. What is here now would be sent as another one.");
  }, [waiting]);
  useShortcuts([
    {
      keys: "Escape",
      label: "Stop the turn; again: force",
      group: "Composer",
      when: () => !watches && stopping.turnId.value !== null,
      run: () => press(),
    },
  ]);
  const [hadNext, setHadNext] = useState(false);
  const press = () => {
    setHadNext(waiting.length > 0);
    stopping.press();
  };
  // it is said until all that waited is over
  const isOver = !running && !waiting.length;
  useEffect(() => {
    if (isOver) setHadNext(false);
  }, [isOver]);

  const refusal = whyNot(!watches, status);
  const cwd = hub.row(open.id)?.cwd ?? session?.fields.workingDirectory ?? "";

  const leave = () => {
    if (editing) draft.replace(editing.text, editing.mentions, editing.pictures);
    setEditing(null);
  };
  // who goes elsewhere in the middle finds what was in the field before
  const left = useRef(leave);
  left.current = leave;
  useEffect(() => () => left.current(), []);
  const edit = ({ promptId, content }: Queued) => {
    const before = editing ?? {
      text: draft.text.value,
      mentions: draft.mentions.value,
      pictures: draft.pictures.value,
    };
    setEditing({ ...before, promptId });
    draft.replace(wordsOf(content), mentionsIn(content), picturesIn(content));
  };
  const editLast = () => {
    const last = waiting.at(-1);
    if (last) return edit(last);
    const said = session?.fields.items.findLast(
      (item): item is Message => item.type === "message" && item.role === "user",
    );
    const content = (said?.content ?? []) as unknown as Json[];
    if (said) draft.replace(wordsOf(content), mentionsIn(content), picturesIn(content));
  };
  const save = async (promptId: string) => {
    setBusy(true);
    const prompt = promptOf(draft.text.value, draft.mentioned(), draft.pictures.value, cwd);
    try {
      await editQueued(hub, open.id, promptId, prompt);
      leave();
    } catch (error) {
      setNote(`Not changed: ${words(error)}`);
    }
    setBusy(false);
  };
  const send = () => {
    if (draft.empty || refusal || busy || reading) return;
    setNote("");
    if (editing) return void save(editing.promptId);
    const [text, mentions, pictures] = [draft.text.value, draft.mentioned(), draft.pictures.value];
    draft.clear();
    open.sent.value += 1;
    void outbox.send(promptOf(text, mentions, pictures, cwd), text, mentions, pictures, session?.fields.seq ?? 0);
  };
  // who is in the field while something waits may want its keys: only the next Esc is for the turn
  const stop = () => {
    if (stopping.stage.value !== null || !leaveForCard()) press();
  };
  const acts = { send, stop, "edit-last": editLast, leave };

  const over = useDropped((found) => {
    if (!refusal) add(found);
  });
  const label = editing ? "Save" : running || status === "paused" ? "Queue" : "Send";
  const policy = policyWords(queue.policy.value);
  return (
    <section class={`composer ${over && !refusal ? "over" : ""}`} aria-label="Composer">
      <Waiting list={waiting} editing={editing?.promptId ?? null} edit={edit} />
      <Sending list={outbox.sending.value} />
      {hadNext && <StopNext list={waiting} close={() => setHadNext(false)} />}
      <StopStage stopping={stopping} />
      {outbox.failed.value && (
        <Note kind="bad" close={() => (outbox.failed.value = null)}>
          Not sent: {outbox.failed.value}
        </Note>
      )}
      {note && <Note close={() => setNote("")}>{note}</Note>}
      {editing && <Note close={leave}>Editing a prompt that waits</Note>}
      {status === "paused" && hub.may("prompt") && <Paused />}
      {refusal && (
        <Note>
          {refusal} {status === "completed" && !watches && <a href={hrefOf({ view: "new" })}>Start another one</a>}
        </Note>
      )}
      <div class="composer-box">
        <Attached draft={draft} reading={reading} />
        <Field
          draft={draft}
          files={files}
          commands={session?.fields.availableCommands ?? []}
          disabled={refusal !== ""}
          editing={editing !== null}
          placeholder={refusal ? "" : running ? "Say what comes next…" : "Message… / commands, @ files"}
          act={(act) => acts[act]()}
          add={add}
        />
        <div class="composer-bar">
          <button
            type="button"
            class="button quiet icon"
            aria-label="Attach pictures or files"
            title="Attach pictures or files"
            disabled={refusal !== ""}
            onClick={() => chooser.current?.click()}
          >
            <Icon name="plus" />
          </button>
          <input
            ref={chooser}
            type="file"
            multiple
            hidden
            onChange={(event) => {
              add([...(event.currentTarget.files ?? [])]);
              event.currentTarget.value = "";
            }}
          />
          <Controls />
          {policy && (
            <span class="composer-policy" title={policy} role="img" aria-label={policy}>
              <Icon name="shield" size={14} />
            </span>
          )}
          <Meter />
          {!watches && <StopButton stopping={stopping} press={press} />}
          <button
            type="button"
            class={`button primary composer-send ${label === "Send" ? "icon" : ""}`}
            aria-label={label}
            title={label === "Send" ? "Send (Enter)" : label}
            disabled={draft.empty || refusal !== "" || busy || reading > 0}
            // the field keeps the focus, and a phone its keyboard
            onPointerDown={(event) => event.preventDefault()}
            onClick={send}
          >
            {label === "Send" ? <Icon name="send" /> : busy ? "Saving…" : label}
          </button>
        </div>
      </div>
    </section>
  );
}

function whyNot(may: boolean, status: string | undefined): string {
  if (!may) return "This device may watch, but not write to sessions.";
  return status === "completed" ? "This session is over." : "";
}

function Paused() {
  const hub = useHub();
  const { id } = useOpen();
  const [busy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    await attempt("It is still paused", () => resume(hub, id));
    setBusy(false);
  };
  return (
    <Note>
      Paused: what is sent waits.{" "}
      <button type="button" class="button" disabled={busy} onClick={() => void go()}>
        <Icon name="play" size={14} /> {busy ? "Resuming…" : "Resume"}
      </button>
    </Note>
  );
}

/** Take in files; how many are still being read. */
function useFiles(sessionId: string, draft: Draft, say: (text: string) => void): [number, (files: File[]) => void] {
  const [reading, setReading] = useState(0);
  const take = async (file: File) => {
    const { isPicture, readPicture, ROOM, upload } = await import("./pictures");
    if (!isPicture(file)) {
      const path = await upload(sessionId, file);
      draft.mention(path);
      draft.type(`${draft.text.value}${/(?:^|\s)$/.test(draft.text.value) ? "" : " "}@${path} `);
      return;
    }
    const picture = await readPicture(file, `${file.name} ${Date.now()} ${Math.random()}`);
    const all = [...draft.pictures.value, picture];
    if (all.reduce((sum, { data }) => sum + data.length, 0) > ROOM) {
      throw new Error(`${picture.name} is too much for one message; send the others first`);
    }
    draft.pictures.value = all;
  };
  const add = (files: File[]) => {
    setReading((count) => count + files.length);
    for (const file of files) {
      take(file)
        .catch((error: unknown) => say(words(error)))
        .finally(() => setReading((count) => count - 1));
    }
  };
  return [reading, add];
}
