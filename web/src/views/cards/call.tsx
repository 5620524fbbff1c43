/** A tool call: one line, and behind it what went in and what came out. */
import type { ComponentChildren } from "preact";
import { millisecondsBetween } from "../../model/summary";
import type { ToolCall } from "../../model/wire.gen";
import { visible } from "../../text/highlight/odd";
import { Icon } from "../../ui/icon";
import { lazily, Missing } from "../../ui/lazy";
import { lasting } from "../../ui/time";
import { Seen } from "../approvals/hidden";
import { useFold } from "../text/fold";
import { useIsPast, useMoment, useSource, useVersion } from "../text/source";
import { countsOf, exitOf, headOf, isDeclined, isWaiting, kindOf } from "./kinds";
import { useFamily } from "./family";
import { describeVerdict } from "./verdict";

const Body = lazily(
  () => import("./bodies").then((module) => module.Body),
  (_, again) => <div class="call-body">{again && <Missing again={again} />}</div>,
);

export function CallCard({ call }: { call: ToolCall }) {
  useVersion(call);
  const [open, toggle] = useFold(call, opensByItself(call));
  const cwd = useSource().session.peek()?.fields.workingDirectory ?? "";
  const head = headOf(call, cwd);
  return (
    <article class={`call call-${call.status}${open ? " call-open" : ""}`}>
      <button
        type="button"
        class="call-head"
        aria-expanded={open}
        title={visible(head.whole.slice(0, 1000))}
        onClick={toggle}
      >
        <span class="call-icon">
          <Icon name={head.icon} size={15} />
        </span>
        <span class="call-line">
          {head.verb && <span class="call-verb">{head.verb}</span>}{" "}
          <span class={`call-about${head.mono ? " mono" : ""}`}>
            <Seen text={head.about} />
          </span>
        </span>
        <Chips call={call} />
        <Allowed call={call} />
        <Took call={call} />
        <Status call={call} />
        <span class="call-turn">
          <Icon name="right" size={12} />
        </span>
      </button>
      {open && <Body call={call} />}
    </article>
  );
}

/** What failed is shown at once, and so is what a command prints while it runs. */
function opensByItself(call: ToolCall): boolean {
  if (call.status === "failed") return !isDeclined(call) && call.error?.code !== "unfinished";
  return call.status === "executing" && Boolean(call.output) && kindOf(call) === "bash";
}

function Chips({ call }: { call: ToolCall }) {
  const { unasked, children } = useFamily(call);
  const counts = countsOf(call);
  const exit = exitOf(call);
  const risky = call.riskLevel === "high" || call.riskLevel === "critical";
  const why = visible(call.riskReasons?.join("\n") ?? "");
  return (
    <>
      {children.length > 0 && <span class="muted tiny">{steps(children.length)}</span>}
      {counts && (
        <span class="call-counts tiny" aria-label={`${counts[0]} lines added, ${counts[1]} removed`}>
          {counts[0] > 0 && <span class="plus">+{counts[0]}</span>}
          {counts[1] > 0 && <span class="minus">−{counts[1]}</span>}
        </span>
      )}
      {exit !== null && exit !== 0 && (
        <span class="chip bad">{typeof exit === "number" ? `exit ${exit}` : visible(exit)}</span>
      )}
      {risky && (
        <span class={`chip wait ${unasked ? "call-also" : ""}`} title={why}>
          {call.riskLevel} risk
        </span>
      )}
      {unasked && (
        <span class="chip wait" title={[unasked.said, why].filter(Boolean).join("\n")}>
          <Icon name="warning" size={12} /> {unasked.chip}
        </span>
      )}
    </>
  );
}

/** Who allowed it, where somebody was asked. */
function Allowed({ call }: { call: ToolCall }) {
  const approvals = useSource().session.peek()?.lookup.approvals;
  const [approval] = (call.approvalIds ?? []).flatMap((id) => approvals?.get(id) ?? []).filter((one) => one.approved);
  if (!approval) return null;
  const words = describeVerdict(approval);
  return (
    <span class="call-allowed muted tiny" title={visible([words, approval.reason].filter(Boolean).join(" · "))}>
      <Icon name="shield" size={12} />
      <span>{words}</span>
    </span>
  );
}

const steps = (count: number): string => (count === 1 ? "1 step" : `${count} steps`);

/** Shorter ones are not worth a word. */
const WORTH = 1000;

function Took({ call }: { call: ToolCall }) {
  useVersion(call);
  const running = call.status === "executing";
  const now = useMoment(running);
  const since = call.executingAt ? Date.parse(call.executingAt) : NaN;
  const took = running ? now - since : (call.duration ?? spent(call));
  return took >= WORTH ? <span class="call-took muted tiny">{lasting(running ? floor(took) : took)}</span> : null;
}

const spent = ({ executingAt, endedAt }: ToolCall): number =>
  executingAt && endedAt ? millisecondsBetween(executingAt, endedAt) : 0;
const floor = (milliseconds: number): number => Math.floor(milliseconds / 1000) * 1000;

function Status({ call }: { call: ToolCall }) {
  const waits = useIsPast() ? "waiting" : "waiting for you";
  if (isWaiting(call)) return <Mark name={waits} class="wait" icon={<Icon name="clock" size={14} />} />;
  const { status } = call;
  if (status === "executing" || status === "pending") {
    return <Mark name={status === "executing" ? "running" : "not started"} class="busy" icon={<span class="spin" />} />;
  }
  if (isDeclined(call)) return <Mark name="denied" class="off" icon={<Icon name="stop" size={12} />} />;
  if (status === "failed") return <Mark name="failed" class="bad" icon={<Icon name="cross" size={14} />} />;
  if (status === "cancelled") return <Mark name="cancelled" class="off" icon={<Icon name="stop" size={12} />} />;
  return <Mark name="done" class="ok" icon={<Icon name="check" size={14} />} />;
}

function Mark({ name, class: kind, icon }: { name: string; class: string; icon: ComponentChildren }) {
  return (
    <span class={`call-status ${kind}`} title={name}>
      {icon}
      <span class="aside">{name}</span>
    </span>
  );
}
