/** The answers to an approval: the agent's own, "always" with its reach, and no with a reason. */
import { useState } from "preact/hooks";
import { allows, choosing, type Decision, denyOnce, inOrder, type Scope } from "../../app/deciding";
import type { ApprovalRow } from "../../app/rows";
import { isComposing } from "../../app/shortcuts";
import type { Option } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";

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

interface Props {
  approval: ApprovalRow;
  /** What is being told to the hub; null when nothing is. */
  sending: Decision | null;
  choose(decision: Decision): void;
  /** Whether keys work, and so are shown. */
  keys: boolean;
}

export function Choices(props: Props) {
  const [open, setOpen] = useState<"always" | "reason" | null>(null);
  if (open === "always") return <Always {...props} close={() => setOpen(null)} />;
  if (open === "reason") return <Reason {...props} close={() => setOpen(null)} />;
  return <Plain {...props} open={setOpen} />;
}

function Plain({ approval, sending, choose, keys, open }: Props & { open(what: "always" | "reason"): void }) {
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
        aria-keyshortcuts={key || undefined}
        onClick={() => choose(decision)}
      >
        <span class="ask-name" title={option.name}>
          {sent === JSON.stringify(decision) ? "Deciding…" : option.name || option.optionId}
        </span>
        {key && keys && <kbd>{key}</kbd>}
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
          Deny {keys && <kbd>d</kbd>}
        </button>
      )}
      <span class="ask-more">
        {yes.length > 0 && (
          <button type="button" class="button quiet" disabled={busy} onClick={() => open("always")}>
            Always…
          </button>
        )}
        <button type="button" class="button quiet" disabled={busy} onClick={() => open("reason")}>
          Deny with a reason…
        </button>
      </span>
      {!yes.length && <p class="small muted ask-wide">The agent offers no way to allow this.</p>}
    </div>
  );
}

function Always({ approval, sending, choose, close }: Props & { close(): void }) {
  const [effect, setEffect] = useState<"allow" | "deny">("allow");
  const covers = COVERS[approval.request.preview?.type ?? ""] ?? "exactly this request";
  const busy = sending !== null;
  return (
    <div class="ask-panel" role="group" aria-label="Always">
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
        The hub answers {covers} by itself from now on. What it cannot tell apart safely, such as chained commands, is
        asked about again.
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
  const [reason, setReason] = useState("");
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
        value={reason}
        // it was asked for by a press of a button just now
        ref={(field) => field?.focus({ preventScroll: true })}
        onInput={(event) => setReason(event.currentTarget.value)}
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
