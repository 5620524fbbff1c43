/** What is not said by the agent itself: notices, errors with what to do next, memory that was shortened. */
import type { ComponentChildren } from "preact";
import { isObject, textOf } from "../../model/json";
import type { Compaction, Failure, Notification, Plan } from "../../model/wire.gen";
import { Icon, type IconName } from "../../ui/icon";
import { Todos } from "../cards/plan";
import { useFold } from "../text/fold";
import { Markdown } from "../text/markdown";
import { useSource, useVersion } from "../text/source";
import { nextStep } from "./next";

const LEVELS: Readonly<Record<string, readonly [icon: IconName, look: string]>> = {
  error: ["cross", "bad"],
  warning: ["warning", "wait"],
  success: ["check", "ok"],
};

export function NotificationBanner({ notification }: { notification: Notification }) {
  useVersion(notification);
  const { level, title, message, actionUrl, count = 1 } = notification;
  const [icon, look] = LEVELS[level] ?? ["info", "plain"];
  return (
    <Banner icon={icon} look={look} title={title || level} count={count}>
      {message && <p>{message}</p>}
      {actionUrl && /^https?:\/\//i.test(actionUrl) && (
        <a href={actionUrl} target="_blank" rel="noopener noreferrer">
          {actionUrl}
        </a>
      )}
    </Banner>
  );
}

export function FailureBanner({ failure }: { failure: Failure }) {
  useVersion(failure);
  const source = useSource();
  const { error, count = 1 } = failure;
  const next = nextStep(error, source.session.peek()?.fields.rateLimit ?? null);
  const tail = isObject(error.details) ? textOf(error.details["stderrTail"]).trim() : "";
  return (
    <Banner icon="warning" look="bad" title={error.message || "Something failed"} count={count} alert>
      {next && <p>{next}</p>}
      {tail && (
        <details class="banner-more">
          <summary>What it printed last</summary>
          <pre tabIndex={0}>{tail.slice(-8000)}</pre>
        </details>
      )}
      <p class="muted tiny">
        {error.code}
        {error.agentCode && ` · ${error.agentCode}`}
      </p>
    </Banner>
  );
}

interface BannerProps {
  icon: IconName;
  look: string;
  title: string;
  count: number;
  alert?: boolean;
  children?: ComponentChildren;
}

function Banner({ icon, look, title, count, alert = false, children }: BannerProps) {
  return (
    <div class={`banner banner-${look}`} role={alert ? "alert" : "note"}>
      <Icon name={icon} />
      <div class="banner-words">
        <p class="banner-title">
          {title.slice(0, 2000)}
          {count > 1 && <span class="chip">{count}×</span>}
        </p>
        {children}
      </div>
    </div>
  );
}

export function CompactionLine({ compaction }: { compaction: Compaction }) {
  useVersion(compaction);
  const [open, toggle] = useFold(compaction);
  const { status, summary, error } = compaction;
  const said =
    status === "completed"
      ? "The agent shortened its memory of what came before"
      : status === "failed" || error
        ? `The agent could not shorten its memory${error ? `: ${error}` : ""}`
        : "The agent is shortening its memory of what came before…";
  return (
    <div class="compaction">
      <button type="button" class="rule" aria-expanded={open} disabled={!summary} onClick={toggle}>
        <span>{said}</span>
        {summary && <Icon name={open ? "down" : "right"} size={12} />}
      </button>
      {open && summary && (
        <div class="compaction-summary">
          <Markdown text={summary} />
        </div>
      )}
    </div>
  );
}

/** The plan as it stands in its turn; the one in force is pinned above. */
export function PlanLine({ plan }: { plan: Plan }) {
  useVersion(plan);
  const [open, toggle] = useFold(plan);
  const done = plan.todos.filter((todo) => todo.status === "completed").length;
  if (!plan.todos.length && !plan.text) return null;
  return (
    <div class={`call${open ? " call-open" : ""}`}>
      <button type="button" class="call-head" aria-expanded={open} onClick={toggle}>
        <span class="call-icon">
          <Icon name="list" size={15} />
        </span>
        <span class="call-line">
          <span class="call-verb">Plan</span>{" "}
          <span class="call-about">
            {plan.todos.length ? `${done} of ${plan.todos.length} done` : (plan.text ?? "").slice(0, 200)}
          </span>
        </span>
        <span class="call-turn">
          <Icon name="right" size={12} />
        </span>
      </button>
      {open && (
        <div class="call-body">
          <Todos todos={plan.todos} />
          {plan.text && <Markdown text={plan.text} />}
        </div>
      )}
    </div>
  );
}
