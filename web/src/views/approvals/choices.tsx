/** The buttons of an approval: allow, deny, store a rule after its reach was shown, deny with a reason. */
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import {
  type Choice,
  type Decision,
  denyOnce,
  type Effect,
  isCritical,
  listChoices,
  type Scope,
} from "../../app/deciding";
import type { ApprovalRow } from "../../app/rows";
import { isComposing, useShortcuts } from "../../app/shortcuts";
import type { RuleOffer } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import type { CardKeys } from "./focus";
import { Sentence, Shortened } from "./hidden";
import { Arguments } from "./preview";
import { useTyped } from "./typed";

const SCOPES: readonly [Scope, string][] = [
  ["session", "This session"],
  ["project", "This project"],
  ["everywhere", "Everywhere"],
];
const EFFECTS: Readonly<Record<Effect, string>> = { allow: "Always allow", deny: "Always deny" };
/** Subjects of rules whose patterns are paths from the directory of a session. */
const FILES: readonly string[] = ["reads", "writes"];
const NO_RULE = "No rule can be made for this request.";
/** Characters of an agent's label. */
const LONGEST_LABEL = 80;

interface Props {
  approval: ApprovalRow;
  /** The decision on its way to the hub; null if there is none. */
  sending: Decision | null;
  choose(decision: Decision): void;
  /** Whether keys decide here; keys that do not act right now are not shown. */
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
  return <Buttons {...props} open={setOpen} left={last.current} />;
}

/** Esc closes the panel and does not stop the turn; the panel has the focus when it opens. */
function usePanel<Element extends HTMLElement>(close: () => void) {
  const first = useRef<Element>(null);
  // once: it must not take the focus back from a field that is used meanwhile
  useLayoutEffect(() => {
    first.current?.focus({ preventScroll: true });
    first.current?.closest(".ask-panel")?.scrollIntoView?.({ block: "nearest" }); // on a small screen the card scrolls
  }, []);
  useShortcuts([{ keys: "Escape", label: "Back to the buttons", group: "Approvals", run: close }]);
  return first;
}

interface ButtonsProps extends Props {
  open(panel: Panel): void;
  /** The panel that was just closed. */
  left: Panel | null;
}

function Buttons({ approval, sending, choose, keys, open, left }: ButtonsProps) {
  const opener = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => opener.current?.focus({ preventScroll: true }), []);
  const { choices, always } = listChoices(approval);
  const busy = sending !== null;
  const sent = JSON.stringify(sending);
  const letters = choices.some(({ key }) => key === "a") ? "a or d" : "d";
  return (
    <div class="ask-choices" role="group" aria-label="Decision">
      {choices.map((choice, place) => (
        <ChoiceButton
          key={`${choice.label} ${JSON.stringify(choice.decision)}`}
          choice={choice}
          isPrimary={place === 0 && (choice.effect === "allow" ? !choice.isMisleading : isCritical(approval))}
          isSending={sent === JSON.stringify(choice.decision)}
          busy={busy}
          keys={keys}
          press={() => choose(choice.decision)}
        />
      ))}
      {keys === "off" && <span class="ask-hint tiny muted">{`Esc, then ${letters}`}</span>}
      <span class="ask-more">
        {always.length > 0 && (
          <button
            ref={left === "always" ? opener : null}
            type="button"
            class="button quiet"
            disabled={busy}
            title="Store a rule; delete it under Devices and rules"
            onClick={() => open("always")}
          >
            {always.includes("allow") ? "Always…" : "Always deny…"}
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
      {!choices.some(({ effect }) => effect === "allow") && (
        <p class="small muted ask-wide">
          {approval.options.some(({ kind }) => kind === "allow_always")
            ? "The agent only offers “Always allow”, but a critical request can only be allowed once."
            : "The agent offers no way to allow this."}
        </p>
      )}
    </div>
  );
}

interface ChoiceButtonProps {
  choice: Choice;
  isPrimary: boolean;
  isSending: boolean;
  busy: boolean;
  keys: Props["keys"];
  press(): void;
}

function ChoiceButton({ choice, isPrimary, isSending, busy, keys, press }: ChoiceButtonProps) {
  const { label, key, effect } = choice;
  return (
    <button
      type="button"
      class={`button once ${effect}${isPrimary ? " primary" : ""}`}
      disabled={busy}
      aria-keyshortcuts={(keys && key) || undefined}
      onClick={press}
    >
      <span class="ask-name">
        <span>{isSending ? "Sending…" : label}</span> <AgentLabel choice={choice} />
      </span>
      {key && <Key name={key} keys={keys} />}
    </button>
  );
}

/** The agent's own name for an option, marked as the agent's. */
function AgentLabel({ choice: { agentLabel, isMisleading, effect } }: { choice: Choice }) {
  if (!agentLabel) return null;
  const name = (
    <bdi>
      “<Shortened text={agentLabel} limit={LONGEST_LABEL} />”
    </bdi>
  );
  if (!isMisleading) return <span class="ask-agent-label tiny">Agent's label: {name}</span>;
  return (
    <span class="ask-agent-label ask-misleading tiny">
      <Icon name="warning" size={12} /> The agent labels this {name}, but it {effect === "allow" ? "allows" : "denies"}{" "}
      the request.
    </span>
  );
}

/** Its room stays, so that no button moves under a pointer. */
const Key = ({ name, keys }: { name: string; keys: Props["keys"] }) =>
  keys && <kbd class={keys === "live" ? "" : "ask-key-off"}>{name}</kbd>;

function Always({ approval, sending, choose, close }: Props & { close(): void }) {
  const effects = listChoices(approval).always;
  const offers = approval.request.ruleOffers ?? [];
  const [effect, setEffect] = useState<Effect>(effects[0] ?? "deny");
  const [offerId, setOfferId] = useState(offers[0]?.offerId);
  const first = usePanel<HTMLDivElement>(close);
  const busy = sending !== null;
  const chosen = offers.find((offer) => offer.offerId === offerId);
  return (
    <div ref={first} class="ask-panel" role="group" aria-label="Always" tabIndex={-1}>
      <div class="ask-line">
        <span class="ask-switch">
          {effects.map((one) => (
            <button
              key={one}
              type="button"
              class="button quiet"
              aria-pressed={one === effect}
              disabled={busy}
              onClick={() => setEffect(one)}
            >
              {EFFECTS[one]}
            </button>
          ))}
        </span>
        <Close close={close} />
      </div>
      {offers.length > 0 ? (
        <Offers offers={offers} effect={effect} chosen={offerId} choose={setOfferId} busy={busy} />
      ) : (
        <p class="small">
          <Sentence text={approval.request.ruleRefusal || NO_RULE} />
        </p>
      )}
      <div class="ask-reach">
        <Arguments input={chosen?.arguments} title="Exactly these arguments" />
      </div>
      {offerId && (
        <div class="ask-choices" role="group" aria-label={`${EFFECTS[effect]} in`}>
          {SCOPES.map(([remember, name]) => (
            <button
              key={remember}
              type="button"
              class="button"
              disabled={busy}
              onClick={() => choose({ decision: effect, remember, rule: offerId })}
            >
              {sending?.remember === remember ? "Sending…" : name}
            </button>
          ))}
          {chosen && FILES.includes(chosen.subject) && (
            <p class="tiny muted ask-wide">“Everywhere” covers the file at this path in every project.</p>
          )}
        </div>
      )}
    </div>
  );
}

interface OffersProps {
  offers: readonly RuleOffer[];
  effect: Effect;
  chosen: RuleOffer["offerId"] | undefined;
  choose(offerId: RuleOffer["offerId"]): void;
  busy: boolean;
}

/** The rules to choose from, the narrowest first, each with its exact reach. */
function Offers({ offers, effect, chosen, choose, busy }: OffersProps) {
  const name = useId();
  return (
    <fieldset class="ask-row ask-offers" disabled={busy}>
      <legend>{effect === "allow" ? "Allow without asking:" : "Deny without asking:"}</legend>
      {offers.map(({ offerId, text }) => (
        <label key={offerId} class="ask-option">
          <input type="radio" name={name} checked={offerId === chosen} onChange={() => choose(offerId)} />
          <span>
            <Sentence text={text} /> {offerId === "any_arguments" && <span class="chip wait">Wider</span>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function Reason({ approval, sending, choose, close }: Props & { close(): void }) {
  const [reason, setReason] = useTyped(approval.id, "reason", "");
  const field = usePanel<HTMLTextAreaElement>(close);
  const busy = sending !== null;
  const deny = () => choose({ ...denyOnce(approval), ...(reason.trim() && { reason: reason.trim() }) });
  const submit = (event: Event) => {
    event.preventDefault();
    deny();
  };
  const handleKey = (event: KeyboardEvent) => {
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
          Reason to send to the agent
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
        onKeyDown={handleKey}
      />
      <div class="ask-choices">
        <button type="submit" class="button danger" disabled={busy}>
          {busy ? "Sending…" : "Deny"}
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
