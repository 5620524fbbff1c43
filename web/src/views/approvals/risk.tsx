/** How risky it is, and why. From high on the reasons stand open. */
import type { RiskLevel } from "../../model/wire.gen";
import { Seen } from "./hidden";

const LEVELS: Readonly<Record<RiskLevel, { word: string; chip: string }>> = {
  low: { word: "Low risk", chip: "ok" },
  medium: { word: "Medium risk", chip: "" },
  high: { word: "High risk", chip: "wait" },
  critical: { word: "Critical risk", chip: "bad" },
};

const levelOf = (level: string) => LEVELS[level as RiskLevel] ?? LEVELS.medium;

export function RiskChip({ level }: { level: string }) {
  const { word, chip } = levelOf(level);
  return <span class={`chip ${chip}`}>{word}</span>;
}

export function RiskReasons({ level, reasons }: { level: string; reasons: readonly string[] }) {
  if (!reasons.length) return null;
  return (
    <details class="ask-reasons" open={level === "high" || level === "critical"}>
      <summary>Why {levelOf(level).word.toLowerCase()}?</summary>
      <ul>
        {reasons.map((reason) => (
          <li key={reason}>
            {reason.split("`").map((part, place) => {
              const seen = <Seen key={place} text={part} />;
              return place % 2 ? <code key={place}>{seen}</code> : seen;
            })}
          </li>
        ))}
      </ul>
    </details>
  );
}
