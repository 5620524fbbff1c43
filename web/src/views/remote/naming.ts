/** What devices are called, and what they look like. Pure. */
import type { IconName } from "../../ui/icon";
import { ago } from "../../ui/time";

/** The first that fits: an iPad calls itself a Mac as well, Android a Linux. */
const KINDS: readonly (readonly [RegExp, string])[] = [
  [/iPhone/, "iPhone"],
  [/iPad/, "iPad"],
  [/Android/, "Android"],
  [/Mac OS/, "Mac"],
  [/Windows/, "Windows"],
  [/CrOS/, "Chromebook"],
  [/Linux/, "Linux"],
];

export function ownName(agent: string): string {
  return KINDS.find(([pattern]) => pattern.test(agent))?.[1] ?? "Browser";
}

/** By its name, which is all that the hub knows; most have kept the one that they gave themselves. */
export const iconOf = (name: string): IconName =>
  /phone|android|pixel|galaxy|tablet|ipad/i.test(name) ? "phone" : "laptop";

/** Digits that people read out, in two groups. */
export const spaced = (code: string): string => code.replace(/^(\d{3})(\d{3})$/, "$1 $2");

export const digitsOf = (text: string): string => text.replace(/\D/g, "").slice(0, 6);

export const triesLeft = (left: number): string =>
  left > 0
    ? left === 1
      ? "One more try is left."
      : `${left} tries are left.`
    : "No try is left: ask for a new QR code on the host.";

/** `just now`, `5 min ago`, or the date: as it goes on in a sentence. */
export function since(timestamp: string, now = Date.now()): string {
  const text = ago(timestamp, now);
  return text === "now" ? "just now" : /^\d+ (s|min|h|d)$/.test(text) ? `${text} ago` : text;
}
