/** How long to wait before coming back: hardly for a blink, long for a hub that is away, never all at one moment. */

const FIRST = 250;
const LONGEST = 30_000;

/** Milliseconds after so many failures in a row (1 is the first). Half of it is chance. */
export function delay(failures: number, random: number): number {
  const longest = Math.min(LONGEST, FIRST * 2 ** (failures - 1));
  return longest * (0.5 + random / 2);
}
