/** A QR code of the rows that the hub made: black on white in any theme, as cameras want it. */
const QUIET = 4;

export function Qr({ rows, label }: { rows: readonly string[]; label: string }) {
  const size = rows.length + 2 * QUIET;
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <path d={pathOf(rows)} />
    </svg>
  );
}

/** One path for all: a run of dark modules is one box. */
export function pathOf(rows: readonly string[]): string {
  const boxes: string[] = [];
  rows.forEach((row, y) => {
    for (const { 0: run, index } of row.matchAll(/1+/g)) {
      boxes.push(`M${index + QUIET} ${y + QUIET}h${run.length}v1h-${run.length}z`);
    }
  });
  return boxes.join("");
}
