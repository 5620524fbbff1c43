/** The answers to an approval: the agent's own, "always" with its reach, and no with a reason. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { allows, choosing, type Decision, denyOnce, inOrder, type Scope } from "../../app/deciding";
import type { ApprovalRow } from "../../app/rows";
import { isComposing, useShortcuts } from "../../app/shortcuts";
import type { Option } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import type { CardKeys } from "./focus";
import { useTyped } from "./typed";

const REACH: readonly [Scope, string][] = [
  ["session", "In this session"],
  ["project", "In this project"],
  ["everywhere", "Everywhere"],
];

/** A rule answers exactly the same again, and nothing else. */
const COVERS: Readonly<Record<string, string>> = {
  command: "exactly this command",
  diff: "changes to exactly this file",
  description: "exactly this request",
};

/** An agent's own "always", in words. */
const AGENTS = "the agent remembers it in its own way; the hub cannot take it back";

interface Props {
  approval: ApprovalRow;
  /** What is being told to the hub; null when nothing is. */
  sending: Decision | null;
  choose(decision: Decision): void;
  /** Whether keys decide here; those that do not now are not shown. */
  keys: CardKeys | false;
}

type Panel = "always" | "reason";

export function Choices(props: Props) {
  const [open, setOpen] = useState<Panel | null>(null);
  const last = useRef<Panel | null>(null);
  const close = () => {
    last.current = open;
    setOpen(null);
  };
  if (open === "always") return <Always {...props} close={close} />;
  if (open === "reason") return <Reason {...props} close={close} />;
  return <Plain {...props} open={setOpen} left={last.current} />;
}

/** Esc closes what was opened last, and does not stop the turn; who opened it by a key is in it. */
function usePanel<Element extends HTMLElement>(close: () => void) {
  const first = useRef<Element>(null);
  // once: it must not take the focus back from what somebody types into meanwhile
  useLayoutEffect(() => {
    first.current?.focus({ preventScroll: true });
    first.current?.closest(".ask-panel")?.scrollIntoView?.({ block: "nearest" }); // where it is tight, the card scrolls
  }, []);
  useShortcuts([{ keys: "Escape", label: "Back to the answers", group: "Approvals", run: close }]);
  return first;
}

interface PlainProps extends Props {
  open(what: Panel): void;
  /** Where somebody comes back from. */
  left: Panel | null;
}

function Plain({ approval, sending, choose, keys, open, left }: PlainProps) {
  const opener = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => opener.current?.focus({ preventScroll: true }), []);
  const options = inOrder(approval.options);
  const yes = options.filter(allows);
  const no = options.filter((option) => !allows(option));
  const busy = sending !== null;
  const sent = JSON.stringify(sending);
  const button = (option: Option, look: string, key: string) => {
    const decision = choosing(option, options);
    return (
      <button
        key={`${option.kind} ${option.optionId}`}
        type="button"
        class={`button ${look}${option.kind.endsWith("_once") ? " once" : ""}`}
        disabled={busy}
        aria-keyshortcuts={(keys && key) || undefined}
        onClick={() => choose(decision)}
      >
        <span class="ask-name" title={option.kind.endsWith("_always") ? `${option.name} (${AGENTS})` : option.name}>
          {sent === JSON.stringify(decision) ? "Deciding…" : option.name || option.optionId}
        </span>
        {key && <Key name={key} keys={keys} />}
      </button>
    );
  };
  const letter = (option: Option, kind: string, key: string) =>
    option === options.find((one) => one.kind === kind) ? key : "";
  return (
    <div class="ask-choices" role="group" aria-label="Decide">
      {yes.map((option, place) => button(option, place ? "" : "primary", letter(option, "allow_once", "a")))}
      {no.map((option) => button(option, "", letter(option, "reject_once", "d")))}
      {!no.length && (
        <button type="button" class="button once" disabled={busy} onClick={() => choose(denyOnce(options))}>
          Deny <Key name="d" keys={keys} />
        </button>
      )}
      {keys === "off" && <span class="ask-hint tiny muted">Esc, then a or d</span>}
      <span class="ask-more">
        {yes.length > 0 && (
          <button
            ref={left === "always" ? opener : null}
            type="button"
            class="button quiet"
            disabled={busy}
            title="A rule of the hub for exactly this, which Devices lists and takes back"
            onClick={() => open("always")}
          >
            Always…
          </button>
        )}
        <button
          ref={left === "reason" ? opener : null}
          type="button"
          class="button quiet"
          disabled={busy}
          onClick={() => open("reason")}
        >
          Deny with a reason…
        </button>
      </span>
      {!yes.length && <p class="small muted ask-wide">The agent offers no way to allow this.</p>}
    </div>
  );
}

/** Its room stays, so that no button moves under a pointer. */
const Key = ({ name, keys }: { name: string; keys: Props["keys"] }) =>
  keys && <kbd class={keys === "live" ? "" : "ask-key-off"}>{name}</kbd>;

function Always({ approval, sending, choose, close }: Props & { close(): void }) {
  const [effect, setEffect] = useState<"allow" | "deny">("allow");
  const first = usePanel<HTMLDivElement>(close);
  const covers = COVERS[approval.request.preview?.type ?? ""] ?? "exactly this request";
  const busy = sending !== null;
  return (
    <div ref={first} class="ask-panel" role="group" aria-label="Always" tabIndex={-1}>
      <div class="ask-line">
        <span class="ask-switch">
          {(["allow", "deny"] as const).map((one) => (
            <button
              key={one}
              type="button"
              class="button quiet"
              aria-pressed={one === effect}
              disabled={busy}
              onClick={() => setEffect(one)}
            >
              {one === "allow" ? "Always allow" : "Always deny"}
            </button>
          ))}
        </span>
        <Close close={close} />
      </div>
      <p class="small muted">
        A rule of the hub, not of the agent: it answers {covers} by itself from now on, until you take it back. What it
        cannot tell apart safely, such as chained commands, is asked about again.
      </p>
      <div class="ask-choices">
        {REACH.map(([remember, name]) => (
          <button
            key={remember}
            type="button"
            class="button"
            disabled={busy}
            onClick={() => choose({ decision: effect, remember })}
          >
            {sending?.remember === remember ? "Deciding…" : name}
          </button>
        ))}
      </div>
    </div>
  );
}

function Reason({ approval, sending, choose, close }: Props & { close(): void }) {
  const [reason, setReason] = useTyped(approval.id, "reason", "");
  const field = usePanel<HTMLTextAreaElement>(close);
  const busy = sending !== null;
  const deny = () => choose({ ...denyOnce(approval.options), ...(reason.trim() && { reason: reason.trim() }) });
  const submit = (event: Event) => {
    event.preventDefault();
    deny();
  };
  const keyed = (event: KeyboardEvent) => {
    if (isComposing(event)) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      deny();
    }
  };
  return (
    <form class="ask-panel" onSubmit={submit}>
      <div class="ask-line">
        <label class="ask-label" for={`reason-${approval.id}`}>
          Why not? The agent is told.
        </label>
        <Close close={close} />
      </div>
      <textarea
        id={`reason-${approval.id}`}
        class="field"
        rows={2}
        maxLength={10_000}
        ref={field}
        value={reason}
        onInput={({ currentTarget: { value } }) => setReason(() => value)}
        onKeyDown={keyed}
      />
      <div class="ask-choices">
        <button type="submit" class="button danger" disabled={busy}>
          {busy ? "Denying…" : "Deny"}
        </button>
      </div>
    </form>
  );
}

function Close({ close }: { close(): void }) {
  return (
    <button type="button" class="button quiet icon" aria-label="Back" onClick={close}>
      <Icon name="cross" size={14} />
    </button>
  );
}
