/**
 * One approval: what is asked, what would be done, how risky it is, and the answers.
 *
 * It never takes the focus from what somebody types into (`focus.ts`), and takes no tap in its first moments: a finger on its way to
 * something else must not allow anything.
 */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useHub } from "../../app/context";
import { allowOnce, decide, deciding, type Decision, denyOnce } from "../../app/deciding";
import type { ApprovalRow } from "../../app/rows";
import { useShortcuts } from "../../app/shortcuts";
import { Icon } from "../../ui/icon";
import { clock } from "../../ui/time";
import { useBelow } from "./below";
import { Choices } from "./choices";
import { useCountdown, useReady } from "./clocks";
import { useCardKeys } from "./focus";
import { Seen } from "./hidden";
import { Preview } from "./preview";
import { isRisky, RiskChip, RiskReasons, RiskWarning } from "./risk";
import { asked, remark } from "./words";

interface Props {
  approval: ApprovalRow;
  /** Whether `a` and `d` decide this one: there can be only one at a time. */
  keys?: boolean;
  /** Beside the heading: which of several, a link to the session. */
  aside?: ComponentChildren;
}

export function ApprovalCard({ approval, keys = false, aside }: Props) {
  const hub = useHub();
  const may = hub.may("approve");
  const ready = useReady();
  const card = useRef<HTMLElement>(null);
  const live = useCardKeys(card, keys && may && !isRisky(approval.request.riskLevel));
  const now = deciding.value.get(approval.id);
  const sending = now?.state === "sending" ? now.decision : null;
  const settled = now?.state === "done";

  const choose = (decision: Decision) => {
    if (ready) void decide(hub, approval, decision);
  };
  const { riskLevel, riskReasons = [] } = approval.request;
  const cwd = hub.row(approval.sessionId)?.cwd;
  const said = remark(approval);
  return (
    <section ref={card} tabIndex={-1} class={`ask card ${riskLevel}`} aria-label={`Approval: ${asked(approval, cwd)}`}>
      {keys && may && (
        <Keys
          live={live === "live"}
          allow={allowOnce(approval.options)}
          deny={denyOnce(approval.options)}
          choose={choose}
        />
      )}
      <header class="ask-head">
        <Icon name="shield" />
        <h2 class="ask-title">
          <Seen text={asked(approval, cwd)} />
        </h2>
        <RiskChip level={riskLevel} />
        {aside}
      </header>
      {said && (
        <p class="ask-said small">
          <Seen text={said} />
        </p>
      )}
      {isRisky(riskLevel) && <RiskWarning level={riskLevel} reasons={riskReasons} />}
      <Body>
        <Preview approval={approval} cwd={cwd} />
        {!isRisky(riskLevel) && <RiskReasons level={riskLevel} reasons={riskReasons} />}
      </Body>
      <footer class="ask-foot">
        {may ? (
          <fieldset class="ask-guard" disabled={!ready}>
            <Choices approval={approval} sending={settled ? {} : sending} choose={choose} keys={keys && live} />
          </fieldset>
        ) : (
          <p class="small muted">This device may only watch. Decide on one that may approve.</p>
        )}
        <Countdown until={approval.expires} />
        {now?.state === "failed" && (
          <p class="ask-failed small" role="alert">
            {now.text}
          </p>
        )}
      </footer>
    </section>
  );
}

/** What would be done, in a box that scrolls, and below it how much of it is out of sight. */
function Body({ children }: { children: ComponentChildren }) {
  const { box, content, below, go } = useBelow();
  return (
    <>
      <div ref={box} class="ask-body" role="group" aria-label="What would be done" tabIndex={0}>
        <div ref={content} class="ask-what">
          {children}
        </div>
      </div>
      {below > 0 && (
        <button type="button" class="ask-below tiny" onClick={go}>
          <Icon name="down" size={12} />
          {below === 1 ? "1 more line" : `${below.toLocaleString()} more lines`}
        </button>
      )}
    </>
  );
}

function Countdown({ until }: { until: string | null }) {
  const left = useCountdown(until);
  if (left === null) return null;
  return (
    <span class={`ask-clock tiny ${left < 30 ? "soon" : ""}`} role="timer">
      <Icon name="clock" size={12} />
      {left > 0 ? `denied in ${clock(left * 1000)}` : "time is up"}
    </span>
  );
}

interface KeysProps {
  live: boolean;
  allow: Decision | null;
  deny: Decision;
  choose(decision: Decision): void;
}

/** `a` and `d`. A key that is held down was meant for the card before this one. */
function Keys({ live, allow, deny, choose }: KeysProps) {
  const key = (keys: string, label: string, decision: Decision | null) => ({
    keys,
    label,
    group: "Approvals" as const,
    when: () => live && decision !== null,
    run: (event: KeyboardEvent) => {
      if (decision && !event.repeat) choose(decision);
    },
  });
  useShortcuts([key("a", "Allow once", allow), key("d", "Deny", deny)]);
  return null;
}
