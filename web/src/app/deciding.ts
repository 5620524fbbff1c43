/**
 * Decisions about approvals, from the press of a button until the hub has them.
 *
 * The first decision wins, whoever makes it. Who comes second is told who was first; the same decision again does no
 * harm, so after silence it can simply be made once more.
 */
import { signal } from "@preact/signals";
import { isObject, type JsonObject, textOf } from "../model/json";
import type { Option } from "../model/wire.gen";
import { path, Refused } from "./api";
import type { Hub } from "./hub";
import type { ApprovalRow } from "./rows";
import { read, write } from "./stored";

export type Scope = "session" | "project" | "everywhere";

/** As the hub takes it. */
export interface Decision {
  optionId?: string;
  decision?: "allow" | "deny";
  remember?: Scope;
  reason?: string;
}

export type Deciding =
  | { state: "sending"; decision: Decision }
  | { state: "done"; decision: Decision; row: ApprovalRow }
  | { state: "failed"; text: string };

/** By the approval's id. */
export const deciding = signal<ReadonlyMap<string, Deciding>>(new Map());

const KEPT = 50;
const OWN = "decided";

/** Whether this browser decided it: who else has its name decided something else. */
export const isOwn = (row: ApprovalRow, me: string | undefined): boolean =>
  row.decidedBy === me && read<string[]>(OWN, []).includes(row.id);

function put(id: string, now: Deciding): void {
  const others = [...deciding.value].filter(([known]) => known !== id).slice(-KEPT);
  deciding.value = new Map([...others, [id, now]]);
}

export async function decide(hub: Hub, row: ApprovalRow, decision: Decision): Promise<void> {
  const state = deciding.value.get(row.id)?.state;
  if (state === "sending" || state === "done") return;
  put(row.id, { state: "sending", decision });
  try {
    const decided = await hub.api.post<ApprovalRow>(path("approvals", row.id), { ...decision });
    put(row.id, { state: "done", decision, row: decided });
    write(OWN, [...read<string[]>(OWN, []).filter((id) => id !== row.id), row.id].slice(-KEPT));
  } catch (error) {
    put(row.id, { state: "failed", text: refusal(error) });
  }
}

function refusal(error: unknown): string {
  if (!(error instanceof Refused)) return String(error);
  if (error.status === 0) return "The hub did not answer, so this may not be decided yet. Try again.";
  if (error.status === 409 && error.failure.code === "conflict") return winner(error.failure.details);
  return error.message;
}

/** Who was first, and what they said. */
function winner(details: unknown): string {
  const told: JsonObject = isObject(details) ? details : {};
  const decision = isObject(told["decision"]) ? told["decision"] : {};
  const verdict = decision["approved"] === true ? "Allowed" : "Denied";
  return `Too late: ${verdict.toLowerCase()} by ${textOf(told["decidedBy"]) || "somebody else"} already.`;
}

// -- options ----------------------------------------------------------------------------------------------------------

export const allows = (option: Pick<Option, "kind">): boolean => option.kind.startsWith("allow");

const ORDER = ["allow_once", "allow_always", "reject_once", "reject_always"];
const rank = ({ kind }: Option): number => (ORDER.includes(kind) ? ORDER.indexOf(kind) : ORDER.length);

/** The agent's options: what allows first, and what binds least first. */
export const inOrder = (options: readonly Option[]): Option[] =>
  [...options].sort((one, other) => rank(one) - rank(other));

/** What choosing an option says to the hub; by yes or no where the agent gave a yes and a no the same id. */
export function choosing(option: Option, options: readonly Option[]): Decision {
  const unclear = options.some((one) => one.optionId === option.optionId && allows(one) !== allows(option));
  return unclear ? { decision: allows(option) ? "allow" : "deny" } : { optionId: option.optionId };
}

/** The decision that the key `a` makes; null where only "always" is offered, which nobody should press by a letter. */
export function allowOnce(options: readonly Option[]): Decision | null {
  const option = options.find(({ kind }) => kind === "allow_once");
  return option ? choosing(option, options) : null;
}

export function denyOnce(options: readonly Option[]): Decision {
  const option = options.find(({ kind }) => kind === "reject_once");
  return option ? choosing(option, options) : { decision: "deny" };
}
