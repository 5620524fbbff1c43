/** What belongs to a call without being part of it: the calls of its sub-agent, and a word about it by the hub. */
import { type Signal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { isObject } from "../../model/json";
import type { Approval, Custom, Thought, ToolCall } from "../../model/wire.gen";
import { useVersion } from "../text/source";

/** What stands in a run of calls. */
export type Step = ToolCall | Approval | Thought;

export interface Family {
  readonly children: Signal<readonly Step[]>;
  /** Set when the call was made without the approval that should have been asked for, or although it was denied. */
  readonly unasked: Signal<Custom | null>;
}

export class Families {
  readonly #known = new WeakMap<ToolCall, Family>();

  of(call: ToolCall): Family {
    let family = this.#known.get(call);
    if (!family) this.#known.set(call, (family = { children: signal([]), unasked: signal(null) }));
    return family;
  }

  /** Nothing belongs to it any more. */
  forget(call: ToolCall): void {
    const family = this.#known.get(call);
    if (family) [family.children.value, family.unasked.value] = [[], null];
  }
}

export const FamiliesContext = createContext<Families>(new Families());

/** What an agent did by itself, in a chip and in a sentence. */
export interface Offence {
  readonly chip: string;
  readonly said: string;
}

const UNASKED: Offence = { chip: "Ran without approval", said: "The agent did this without asking first." };
const DENIED: Offence = { chip: "Ran although denied", said: "The agent did this although it was denied." };

export function useFamily(call: ToolCall): { children: readonly Step[]; unasked: Offence | null } {
  useVersion(call);
  const family = useContext(FamiliesContext).of(call);
  const fact = family.unasked.value;
  const denied = fact !== null && isObject(fact.data) && fact.data["denied"] === true;
  return { children: family.children.value, unasked: fact && (denied ? DENIED : UNASKED) };
}
