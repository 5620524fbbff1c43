/** How full the agent's memory is, and what the session has cost so far: a ring, and figures for who asks. */
import { useOpen } from "../../app/context";
import type { CostBreakdown, TokenUsage } from "../../model/wire.gen";
import { count } from "../../ui/time";

const ROUND = 2 * Math.PI * 6;

export function Meter() {
  const open = useOpen();
  void open.head.value;
  const fields = open.session.value?.fields;
  if (!fields) return null;
  const { contextWindow, usage, cost } = fields;
  if (!contextWindow && !usage && !cost) return null;
  const rows = [
    ...(contextWindow
      ? [
          [
            "Context",
            `${count(contextWindow.used)} of ${count(contextWindow.limit)} tokens (${percent(contextWindow.percentage)})`,
          ],
        ]
      : []),
    ...(usage ? usageRows(usage) : []),
    ...(cost ? [["Cost", money(cost)]] : []),
  ];
  const words = rows.map(([name, value]) => `${name}: ${value}`).join("\n");
  return (
    <details class="composer-meter">
      <summary title={words}>
        <span class="aside">Used so far: </span>
        {contextWindow && <Ring part={contextWindow.percentage / 100} />}
        {contextWindow && <span class="composer-percent">{percent(contextWindow.percentage)}</span>}
        {cost && <span class="composer-cost">{money(cost)}</span>}
        {!contextWindow && !cost && usage && (
          <span>
            {count(usage.inputTokens + usage.outputTokens)}
            <span class="composer-unit"> tokens</span>
          </span>
        )}
      </summary>
      <dl class="composer-figures">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

const percent = (value: number): string => (value > 0 && value < 1 ? "<1 %" : `${Math.round(value)} %`);

function Ring({ part }: { part: number }) {
  const full = Math.min(1, Math.max(0, part));
  const level = full >= 0.9 ? "bad" : full >= 0.75 ? "wait" : "";
  return (
    <svg class={`composer-ring ${level}`} width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
      <circle cx="8" cy="8" r="6" />
      <circle cx="8" cy="8" r="6" stroke-dasharray={`${full * ROUND} ${ROUND}`} transform="rotate(-90 8 8)" />
    </svg>
  );
}

function usageRows({ inputTokens, outputTokens, cacheReadTokens }: TokenUsage): string[][] {
  const read = cacheReadTokens ? [["From cache", `${count(cacheReadTokens)} tokens`]] : [];
  return [["In", `${count(inputTokens)} tokens`], ["Out", `${count(outputTokens)} tokens`], ...read];
}

/** An agent may call its currency what it likes. */
function money({ total, currency }: CostBreakdown): string {
  const digits = total !== 0 && Math.abs(total) < 0.01 ? 4 : 2;
  try {
    return new Intl.NumberFormat(undefined, { style: "currency", currency, maximumFractionDigits: digits }).format(
      total,
    );
  } catch {
    return `${total.toFixed(digits)} ${currency}`;
  }
}
