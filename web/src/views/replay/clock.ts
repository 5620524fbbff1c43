/** Times as a player shows them. */

/** A moment of playing: `0:07`, `12:30`, `1:02:03`. */
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
