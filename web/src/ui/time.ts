/** Times and amounts in the fewest words that are still exact enough. */
const STEPS: readonly [limit: number, divisor: number, unit: string][] = [
  [3600, 60, "min"],
  [86_400, 3600, "h"],
  [604_800, 86_400, "d"],
];

/** How long ago: `now`, `5 min`, `3 h`, `2 d`, then the date. */
export function ago(timestamp: string, now = Date.now()): string {
  const then = Date.parse(timestamp);
  if (Number.isNaN(then)) return "";
  const seconds = Math.max(0, (now - then) / 1000);
  if (seconds < 60) return "now";
  for (const [limit, divisor, unit] of STEPS) {
    if (seconds < limit) return `${Math.floor(seconds / divisor)} ${unit}`;
  }
  return new Date(then).toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" });
}

/** A duration in milliseconds: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 1 min`. */
export function lasting(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `950`, `12.4k`, `1.2M`. */
export function count(amount: number): string {
  if (amount < 1000) return String(amount);
  return amount < 1e6 ? `${trimmed(amount / 1e3)}k` : `${trimmed(amount / 1e6)}M`;
}

export function bytes(amount: number): string {
  if (amount < 1024) return `${amount} B`;
  return amount < 1 << 20 ? `${trimmed(amount / 1024)} KB` : `${trimmed(amount / (1 << 20))} MB`;
}

const trimmed = (value: number): string => value.toFixed(value < 100 ? 1 : 0).replace(/\.0$/, "");

/** The exact moment, for a tooltip. */
export const moment = (timestamp: string): string => {
  const then = new Date(timestamp);
  return Number.isNaN(then.getTime()) ? "" : then.toLocaleString();
};

/** As a clock or a player shows a time in milliseconds: `0:07`, `12:30`, `1:02:03`. */
export function clock(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const shown = parts[0] ? parts : parts.slice(1);
  return shown.map((part, index) => (index ? String(part).padStart(2, "0") : part)).join(":");
}

/** When that was, to the second; "" for what is no time. */
export function timeOfDay(timestamp: string): string {
  const then = new Date(timestamp);
  return Number.isNaN(then.getTime()) ? "" : then.toLocaleTimeString();
}
