/**
 * Decisions about approvals: which buttons a request gets, and sending the decision to the hub.
 *
 * The first decision wins. A later one fails and names the winner. Sending the same decision again is idempotent, so
 * after a timeout it can be sent once more.
 */
import { signal } from "@preact/signals";
import { isObject, type JsonObject, textOf } from "../model/json";
import { KIND_LABELS } from "../model/tables.gen";
import type { Option, RuleOffer } from "../model/wire.gen";
import { path, Refused } from "./api";
import { isModeRequest } from "./approvals";
import type { Hub } from "./hub";
import type { ApprovalRow } from "./rows";
import { read, write } from "./stored";

export type Scope = "session" | "project" | "everywhere";

export type Effect = "allow" | "deny";

/** The answers to the questions of a tool, by question id. */
export type Answers = Record<string, string | string[]>;

/** The body of `POST /approvals/{id}`. */
export interface Decision {
  optionId?: string;
  decision?: Effect;
  remember?: Scope;
  /** Which of the offered rules `remember` stores. */
  rule?: RuleOffer["offerId"];
  answers?: Answers;
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

/** Whether this browser made the decision; another device may have the same name. */
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
    put(row.id, { state: "failed", text: describeFailure(error) });
  }
}

function describeFailure(error: unknown): string {
  if (!(error instanceof Refused)) return String(error);
  if (error.status === 0) return "The hub did not answer, so this may not be decided yet. Try again.";
  if (error.status === 409 && error.failure.code === "conflict") return describeWinner(error.failure.details);
  return error.message;
}

/** Name the decision that won. */
function describeWinner(details: unknown): string {
  const known: JsonObject = isObject(details) ? details : {};
  const decision = isObject(known["decision"]) ? known["decision"] : {};
  const verdict = decision["approved"] === true ? "allowed" : "denied";
  const by = textOf(known["decidedBy"]);
  return `Too late: already ${verdict}${by && ` by ${by}`}.`;
}

/** Why the hub stored no rule although one was requested; empty if it did, or none was. */
export const ruleRefusalOf = (row: ApprovalRow): string => textOf(row.decision?.["ruleRefusal"]);

/** The reach of the rule that the decision stored, in words. */
export function storedRuleOf(row: ApprovalRow): string {
  const rule = row.decision?.["rule"];
  return isObject(rule) ? textOf(rule["text"]) : "";
}

// -- options ----------------------------------------------------------------------------------------------------------

export const allows = (option: Pick<Option, "kind">): boolean => option.kind.startsWith("allow");

/** Pilothouse's label for an option, by its kind. The agent's own name for it is never the label. */
export function labelOption(option: Option): string {
  const known = Object.hasOwn(KIND_LABELS, option.kind) ? KIND_LABELS[option.kind] : undefined;
  return known ? option.label || known : allows(option) ? "Allow" : "Deny";
}

const normalizeLabel = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[\s.!…]+/g, " ")
    .trim();

/** What choosing an option sends; a plain yes or no if the agent gave both the same id. */
export function toDecision(option: Option, options: readonly Option[]): Decision {
  const unclear = options.some((one) => one.optionId === option.optionId && allows(one) !== allows(option));
  return unclear ? plainDecision(option) : { optionId: option.optionId };
}

/** Yes or no to this request alone: the id of an agent's "always" would store a rule whose reach was not shown. */
const plainDecision = (option: Option): Decision => ({ decision: allows(option) ? "allow" : "deny" });

/** Whether its id says no more than yes or no to this request. The hub takes an unknown kind that allows by its id only. */
const isForOnce = (option: Option): boolean =>
  option.kind.endsWith("_once") || (allows(option) && option.kind !== "allow_always");

/** A button of an approval. */
export interface Choice {
  label: string;
  decision: Decision;
  effect: Effect;
  /** The agent's own name for it, if that says something else or is needed to tell two buttons apart. */
  agentLabel: string;
  /** The agent's name says the opposite of what the option does. */
  isMisleading: boolean;
  /** The key that chooses it. */
  key: "" | "a" | "d";
}

export interface ChoiceList {
  /** In the order in which they are shown; the first one is the primary button. */
  choices: readonly Choice[];
  /** The effects for which a rule can be requested; empty if "Always…" is not offered. */
  always: readonly Effect[];
}

type Asking = Pick<ApprovalRow, "options" | "request">;

export const isCritical = ({ request }: Pick<ApprovalRow, "request">): boolean => request.riskLevel === "critical";

/**
 * The buttons of a request.
 *
 * An agent's own "always" is not a button: the hub stores a rule of its own, whose reach "Always…" shows first. It is
 * one only where the agent has no other way to allow, or where the options are modes to choose from. A critical request
 * is denied by the first button, and nothing allows it for longer than once.
 */
export function listChoices(row: Asking): ChoiceList {
  const { options, request } = row;
  const critical = isCritical(row);
  const offered = offeredOptions(options, critical, isModeRequest(request));
  const labels = offered.map((option) => buttonLabel(option, offered));
  const listed = offered.map((option, place): Choice => {
    const label = labels[place] ?? "";
    const isAmbiguous = labels.indexOf(label) !== labels.lastIndexOf(label);
    return {
      label,
      decision: isModeRequest(request) || isForOnce(option) ? toDecision(option, options) : plainDecision(option),
      effect: allows(option) ? "allow" : "deny",
      agentLabel:
        isAmbiguous || normalizeLabel(option.name) !== normalizeLabel(label) ? option.name || option.optionId : "",
      isMisleading: option.isMisleading ?? false,
      key: "",
    };
  });
  const allow = listed.filter(({ effect }) => effect === "allow");
  const deny = listed.filter(({ effect }) => effect === "deny");
  if (!deny.length) deny.push(PLAIN_DENIAL);
  const choices = critical ? [...deny, ...allow] : putDenialInSight(allow, deny);
  return { choices: withKeys(choices, allowOnce(row), deny[0]!), always: alwaysEffects(row, allow.length > 0) };
}

/** Buttons in front of a denial; more of them would push it out of sight. */
const FEW = 4;

const putDenialInSight = (allow: readonly Choice[], deny: readonly Choice[]): Choice[] =>
  allow.length > FEW ? [allow[0]!, ...deny.slice(0, 1), ...allow.slice(1), ...deny.slice(1)] : [...allow, ...deny];

const PLAIN_DENIAL: Choice = {
  label: "Deny",
  decision: { decision: "deny" },
  effect: "deny",
  agentLabel: "",
  isMisleading: false,
  key: "",
};

function offeredOptions(options: readonly Option[], critical: boolean, areModes: boolean): Option[] {
  const ordered = sortOptions(options);
  if (areModes) return ordered.filter((option) => !critical || !allows(option) || option.kind === "allow_once");
  const once = ordered.filter(({ kind }) => kind === "allow_once");
  const other = critical ? [] : ordered.filter((option) => allows(option) && option.kind !== "allow_once");
  return [
    ...(once.length ? once : other.slice(0, 1)), // they all send the same
    ...ordered.filter((option) => !allows(option) && option.kind !== "reject_always"),
  ];
}

const ORDER = ["allow_once", "allow_always", "reject_once", "reject_always"];
const rank = ({ kind }: Option): number => (ORDER.includes(kind) ? ORDER.indexOf(kind) : ORDER.length);

/** Options that allow first, and of these the least binding one. */
const sortOptions = (options: readonly Option[]): Option[] =>
  [...options].sort((one, other) => rank(one) - rank(other));

/** "Allow" for the agent's "always" where that is the only way to allow. */
function buttonLabel(option: Option, offered: readonly Option[]): string {
  const isOnly = option.kind === "allow_always" && !offered.some(({ kind }) => kind === "allow_once");
  return isOnly ? "Allow" : labelOption(option);
}

function withKeys(choices: readonly Choice[], allowing: Decision | null, denying: Choice): Choice[] {
  const sent = JSON.stringify(allowing);
  return choices.map((choice) => {
    if (choice === denying) return { ...choice, key: "d" };
    return allowing && JSON.stringify(choice.decision) === sent ? { ...choice, key: "a" } : choice;
  });
}

function alwaysEffects(row: Asking, canAllow: boolean): Effect[] {
  const hasOffers = Boolean(row.request.ruleOffers?.length);
  if (isModeRequest(row.request)) return [];
  if (isCritical(row)) return hasOffers ? ["deny"] : [];
  // without offers "Always…" says why there are none
  return canAllow ? ["allow", "deny"] : [];
}

/**
 * The decision of the key `a`. Null where a single letter must not decide: for a critical request, for one that only
 * "always" allows, and between several ways to allow it once.
 */
export function allowOnce(row: Asking): Decision | null {
  const [option, another] = row.options.filter(({ kind }) => kind === "allow_once");
  return option && !another && !isCritical(row) ? toDecision(option, row.options) : null;
}

/** The decision of the key `d`, and of a denial with a reason. */
export function denyOnce({ options }: Pick<Asking, "options">): Decision {
  const option = options.find(({ kind }) => kind === "reject_once");
  return option ? toDecision(option, options) : { decision: "deny" };
}
