/** The risk level and its reasons. From high on, the reasons stand open above the preview. */
import type { RiskLevel } from "../../model/wire.gen";
import { Sentence } from "./hidden";

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

/** Whether the reasons must be read before the decision. */
export const isRisky = (level: string): boolean => level === "high" || level === "critical";

interface Reasons {
  level: string;
  reasons: readonly string[];
}

/** The reasons of a lower level, folded. */
export function RiskReasons({ level, reasons }: Reasons) {
  if (!reasons.length) return null;
  return (
    <details class="ask-reasons">
      <summary>Why {levelOf(level).word.toLowerCase()}?</summary>
      <List reasons={reasons} />
    </details>
  );
}

/** Reasons that are shown at once; more of them would push the preview out of sight. */
const FIRST = 3;
/** Characters of a reason that are shown: its beginning and its end. */
const LONGEST = 240;

export function RiskWarning({ level, reasons }: Reasons) {
  if (!reasons.length) return null;
  const rest = reasons.slice(FIRST);
  return (
    <div class="ask-reasons ask-warning" role="group" aria-label={`Why ${levelOf(level).word.toLowerCase()}`}>
      <List reasons={reasons.slice(0, FIRST)} />
      {rest.length > 0 && (
        <details>
          <summary>{rest.length === 1 ? "1 more reason" : `${rest.length} more reasons`}</summary>
          <List reasons={rest} />
        </details>
      )}
    </div>
  );
}

function List({ reasons }: { reasons: readonly string[] }) {
  return (
    <ul>
      {reasons.map((reason) => (
        <li key={reason}>
          <Sentence text={reason} limit={LONGEST} />
        </li>
      ))}
    </ul>
  );
}
