/** Where one types. It grows with its text, and completes commands and files. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Draft } from "../../app/drafts";
import type { Json } from "../../model/wire.gen";
import { commandsFor, filesFor, isSpaced, type Suggestion, triggerAt } from "./completion";
import type { Files } from "./files";
import { type Act, actOf, isTouch } from "./keys";
import { optionId, Popup } from "./popup";

interface Props {
  draft: Draft;
  files: Files;
  commands: readonly Json[];
  disabled: boolean;
  editing: boolean;
  placeholder: string;
  act(act: "send" | "stop" | "edit-last" | "leave"): void;
  add(files: File[]): void;
}

const LIST = "composer-list";

/** Office programs put a picture of what was copied beside the words of it; the words are meant. */
const isWritten = (given: DataTransfer | null): boolean =>
  ["text/plain", "text/html"].every((type) => given?.types?.includes(type));

export function Field({ draft, files, commands, disabled, editing, placeholder, act, add }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [dismissed, setDismissed] = useState("");
  const text = draft.text.value;
  useGrowth(area, text);

  const trigger = triggerAt(text, Math.min(caret, text.length));
  const wanted = trigger ? `${trigger.kind} ${trigger.from}` : "";
  const open = trigger !== null && wanted !== dismissed && !disabled;
  const list = !open
    ? []
    : trigger.kind === "command"
      ? commandsFor(trigger.query, commands)
      : filesFor(trigger.query, files.entries.value);
  const place = Math.min(chosen, Math.max(0, list.length - 1));

  const moved = (now: HTMLTextAreaElement) => {
    setCaret(now.selectionStart);
    const next = triggerAt(now.value, now.selectionStart);
    if (next?.kind === "file") void files.look(next.query);
    if (!next) setDismissed("");
  };
  const take = (suggestion: Suggestion) => {
    if (!trigger) return;
    const before = text.slice(0, trigger.from) + suggestion.insert;
    draft.type(before + text.slice(trigger.to).replace(/^ /, suggestion.insert.endsWith(" ") ? "" : " "));
    if (suggestion.path !== undefined) draft.mention(suggestion.path);
    if (suggestion.more) void files.look(suggestion.insert.slice(1));
    setChosen(0);
    setCaret(before.length);
    requestAnimationFrame(() => area.current?.setSelectionRange(before.length, before.length));
    area.current?.focus();
  };
  const within: Partial<Record<NonNullable<Act>, () => void>> = {
    next: () => setChosen((place + 1) % list.length),
    previous: () => setChosen((place - 1 + list.length) % list.length),
    accept: () => {
      const one = list[place];
      if (one) take(one);
    },
    leave: () => setDismissed(wanted),
  };
  const keyed = (event: KeyboardEvent) => {
    const choosing = list.length > 0;
    // a command that is typed out needs no choosing
    const whole =
      choosing && event.key === "Enter" && trigger?.kind === "command" && list[place]?.insert.trim() === text;
    const meant = actOf(event, { choosing: choosing && !whole, empty: !text, touch: isTouch(), editing });
    if (!meant) return;
    event.preventDefault();
    if (choosing && !whole && within[meant]) within[meant]();
    else if (meant === "send" || meant === "stop" || meant === "edit-last" || meant === "leave") act(meant);
  };
  const pasted = (event: ClipboardEvent) => {
    const found = [...(event.clipboardData?.files ?? [])];
    if (!found.length || isWritten(event.clipboardData)) return;
    event.preventDefault();
    add(found);
  };
  return (
    <>
      {open && (list.length > 0 || (trigger.kind === "file" && !isSpaced(trigger.query))) && (
        <Popup id={LIST} kind={trigger.kind} list={list} chosen={place} looking={files.looking.value} take={take} />
      )}
      <textarea
        ref={area}
        class="composer-field"
        dir="auto"
        rows={1}
        aria-label="Message to the agent"
        aria-haspopup="listbox"
        aria-controls={list.length ? LIST : undefined}
        aria-autocomplete="list"
        aria-activedescendant={list.length ? optionId(LIST, place) : undefined}
        enterkeyhint={isTouch() ? "enter" : "send"}
        placeholder={placeholder}
        disabled={disabled}
        value={text}
        onInput={(event) => {
          setChosen(0);
          draft.type(event.currentTarget.value);
          moved(event.currentTarget);
        }}
        onSelect={(event) => moved(event.currentTarget)}
        onKeyDown={keyed}
        onPaste={pasted}
      />
    </>
  );
}

/** As tall as its text; the style sheet says how tall at most. */
function useGrowth(area: { current: HTMLTextAreaElement | null }, text: string): void {
  useLayoutEffect(() => {
    const field = area.current;
    if (!field) return;
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  }, [text]);
}
