/** What can be done with a session that was begun elsewhere, in words. Take over is only for one that somebody has. */
import { type FoundSession, type How, wish } from "../../app/found";
import type { Hub } from "../../app/hub";
import type { Choice } from "../../ui/menu";
import type { IconName } from "../../ui/icon";

interface Words {
  readonly label: string;
  readonly about: string;
  readonly icon: IconName;
}

export const WORDS: Readonly<Record<How, Words>> = {
  watch: { label: "Watch", about: "See what it does, as it happens. Nothing is changed there.", icon: "info" },
  resume: { label: "Continue", about: "Go on with it here. No other program may have it then.", icon: "play" },
  fork: { label: "Fork", about: "Go on with a copy of it here; the other one stays as it is.", icon: "git" },
  take_over: { label: "Take over…", about: "End the program that has it, and go on with it here.", icon: "warning" },
};

export type Way = Choice & Words & { readonly how: How };

/** In the order in which they are offered; `watched`: that is the case already. */
export function choicesFor(hub: Hub, found: FoundSession, watched = false): Way[] {
  if (!hub.may("prompt")) return [];
  const ways: How[] = watched ? ["resume", "fork"] : ["watch", "resume", "fork"];
  if (found.pid && hub.may("approve")) ways.push("take_over");
  return ways.map((how) => ({
    how,
    ...WORDS[how],
    danger: how === "take_over",
    run: () => (wish.value = { found, how }),
  }));
}
