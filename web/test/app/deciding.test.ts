import { expect, test } from "vitest";
import { allowOnce, decide, deciding, denyOnce, labelOption, listChoices, toDecision } from "../../src/app/deciding";
import { Hub } from "../../src/app/hub";
import type { Answer, Request } from "../../src/link/ports";
import type { ApprovalRow } from "../../src/app/rows";
import type { Json, Option, RuleOffer } from "../../src/model/wire.gen";
import { approvalRow } from "../views/approvals.rows";

function hubThat(answer: () => Answer | Promise<Answer>): { hub: Hub; asked: [string, Request | undefined][] } {
  const asked: [string, Request | undefined][] = [];
  const hub = new Hub({
    clock: { now: () => 0, after: () => () => {} },
    random: () => 0.5,
    newId: () => "id",
    openSocket: () => ({ send: () => {}, close: () => {} }),
    fetch: async (path, request) => {
      asked.push([path, request]);
      return answer();
    },
  });
  return { hub, asked };
}

const body = (row: unknown): Json => row as Json;

test("a decision is sent once, however often it is pressed", async () => {
  let done = (_: Answer): void => {};
  const { hub, asked } = hubThat(() => new Promise((resolve) => (done = resolve)));
  const row = approvalRow("once");
  const first = decide(hub, row, { optionId: "yes" });
  void decide(hub, row, { optionId: "no" });
  expect(deciding.value.get("once")).toEqual({ state: "sending", decision: { optionId: "yes" } });
  done({ status: 200, body: body({ ...row, state: "resolved" }) });
  await first;
  await decide(hub, row, { optionId: "no" });
  expect(asked).toEqual([["approvals/once", { method: "POST", body: { optionId: "yes" } }]]);
  expect(deciding.value.get("once")?.state).toBe("done");
});

test("who comes second is told who was first, and may not try for ever in vain", async () => {
  const details = { decision: { approved: true }, decidedBy: "phone" };
  const error = { code: "conflict", message: "'x' was approved already", recoverable: true, details };
  const { hub } = hubThat(() => ({ status: 409, body: { error } }));
  await decide(hub, approvalRow("late"), { decision: "deny" });
  expect(deciding.value.get("late")).toEqual({ state: "failed", text: "Too late: already allowed by phone." });
});

test("silence is no decision, and it can be made again", async () => {
  let reachable = false;
  const { hub, asked } = hubThat(() => {
    if (!reachable) throw new Error("no network");
    return { status: 200, body: body(approvalRow("again")) };
  });
  await decide(hub, approvalRow("again"), { decision: "allow" });
  expect(deciding.value.get("again")).toMatchObject({ state: "failed", text: expect.stringContaining("Try again") });
  reachable = true;
  await decide(hub, approvalRow("again"), { decision: "allow" });
  expect(asked).toHaveLength(2);
  expect(deciding.value.get("again")?.state).toBe("done");
});

type Asked = Partial<ApprovalRow["request"]>;

/** An approval with these options: `kind`, or `kind: name`. */
function asking(options: string[], request: Asked = {}): ApprovalRow {
  const row = approvalRow("a1");
  return {
    ...row,
    options: options.map((text, place) => {
      const [kind = "", name = ""] = text.split(": ");
      return { optionId: `o${place}`, name, kind };
    }),
    request: { ...row.request, ...request },
  };
}

const buttons = (row: ApprovalRow) => listChoices(row).choices.map(({ label }) => label);
const critical: Asked = { riskLevel: "critical" };
const OFFERS: RuleOffer[] = [{ offerId: "exact", text: "Run exactly `x`", subject: "commands", pattern: "x" }];

test("options get Pilothouse's labels by their kind, whatever the agent calls them", () => {
  const named = (kind: string, more: Partial<Option> = {}) =>
    labelOption({ optionId: "x", name: "Click me", kind, ...more });
  expect(["allow_once", "allow_always", "reject_once", "reject_always"].map((kind) => named(kind))).toEqual([
    "Allow once",
    "Always allow",
    "Deny",
    "Always deny",
  ]);
  expect([named("allow_later"), named("constructor"), named("later")]).toEqual(["Allow", "Deny", "Deny"]);
  expect(named("allow_once", { label: "Allow this time" })).toBe("Allow this time");
  expect(named("allow_later", { label: "Deny" })).toBe("Allow");
});

test("allow once comes first, and an agent's own always is not a button", () => {
  const row = approvalRow("a1");
  expect(buttons(row)).toEqual(["Allow once", "Deny"]);
  expect(listChoices(row)).toMatchObject({ choices: [{ key: "a" }, { key: "d" }], always: ["allow", "deny"] });
});

test("the agent's label is kept beside ours only if it says something else", () => {
  const row = asking(["allow_once: allow  once", "reject_once: No way", "reject_always: Never"]);
  expect(listChoices(row).choices.map(({ agentLabel }) => agentLabel)).toEqual(["", "No way"]);
});

test("two options of one kind are told apart by the agent's labels", () => {
  const row = asking([
    "allow_once: Allow once",
    "allow_once: Yes, and go on",
    "reject_once: Deny",
    "reject_once: Stop",
  ]);
  expect(listChoices(row).choices.map(({ label, agentLabel, key }) => [label, agentLabel, key])).toEqual([
    ["Allow once", "Allow once", ""],
    ["Allow once", "Yes, and go on", ""],
    ["Deny", "Deny", "d"],
    ["Deny", "Stop", ""],
  ]);
  expect(allowOnce(row)).toBeNull();
});

test("a critical request is denied first, and nothing allows it for longer than once", () => {
  const row = asking(["allow_once: Yes", "allow_always: Always", "reject_once: No"], critical);
  expect(buttons(row)).toEqual(["Deny", "Allow once"]);
  expect(listChoices(row).always).toEqual([]);
  expect(listChoices(asking(["allow_once: Yes"], { ...critical, ruleOffers: OFFERS })).always).toEqual(["deny"]);
  expect(listChoices(row).choices.map(({ key }) => key)).toEqual(["d", ""]);
  expect(buttons(asking(["allow_always: Always", "reject_once: No"], critical))).toEqual(["Deny"]);
});

test("an agent that only offers always gets a button that allows", () => {
  const row = asking(["allow_always: Trust this", "reject_once: Deny"]);
  const [allow] = listChoices(row).choices;
  expect(allow).toMatchObject({ label: "Allow", agentLabel: "Trust this", decision: { decision: "allow" }, key: "" });
  expect(listChoices(asking(["allow_always: One", "allow_always: Two", "allow_later: Three"])).choices).toHaveLength(2);
});

test("the options of a request that chooses a mode have a button each", () => {
  const names = ["allow_always: Accept all edits", "allow_once: Ask before edits", "reject_once: Keep planning"];
  const { choices, always } = listChoices(
    asking(names, { toolName: "ExitPlanMode", choosesMode: true, ruleOffers: OFFERS }),
  );
  expect(choices.map(({ label, agentLabel }) => `${label}: ${agentLabel}`)).toEqual([
    "Allow once: Ask before edits",
    "Always allow: Accept all edits",
    "Deny: Keep planning",
  ]);
  expect(always).toEqual([]);
});

test("always of a tool that only has the name of a mode switch stores a rule", () => {
  const names = ["allow_always: Always", "allow_once: Yes", "reject_once: No"];
  const { choices, always } = listChoices(asking(names, { toolName: "SwitchMode", ruleOffers: OFFERS }));
  expect(choices.map(({ label }) => label)).toEqual(["Allow once", "Deny"]);
  expect(always).toContain("allow");
});

test("many options do not push the denial out of sight", () => {
  const many = Array.from({ length: 100 }, (_, place) => ({
    optionId: `${place}`,
    name: `${place}`,
    kind: "allow_once",
  }));
  const options = [...many, { optionId: "no", name: "No", kind: "reject_once" }] as Option[];
  const { choices } = listChoices({ ...approvalRow("a"), options });
  expect(choices.slice(0, 3).map(({ decision }) => decision)).toEqual([
    { optionId: "0" },
    { optionId: "no" },
    { optionId: "1" },
  ]);
  expect(choices).toHaveLength(101);
});

test("an option that allows in an unknown way is chosen by its id", () => {
  const row = { ...approvalRow("a"), options: [{ optionId: "s", name: "For now", kind: "allow_session" }] as Option[] };
  expect(listChoices(row).choices[0]).toMatchObject({ label: "Allow", decision: { optionId: "s" } });
  expect(allowOnce(row)).toBe(null);
});

test("a request can be denied even if the agent offers no option for that", () => {
  expect(listChoices(asking([]))).toMatchObject({
    choices: [{ decision: { decision: "deny" }, key: "d" }],
    always: [],
  });
  const only = asking(["reject_always: Never"]);
  expect(listChoices(only).choices.map(({ decision }) => decision)).toEqual([{ decision: "deny" }]);
});

test("an id that means yes and no is decided by yes or no", () => {
  const same = [
    { optionId: "x", name: "Yes", kind: "allow_once" },
    { optionId: "x", name: "No", kind: "reject_once" },
  ];
  expect(same.map((option) => toDecision(option, same))).toEqual([{ decision: "allow" }, { decision: "deny" }]);
});

test("a letter never allows for good", () => {
  const row = asking(["allow_always: Always"]);
  expect(allowOnce(row)).toBeNull();
  expect(denyOnce(row)).toEqual({ decision: "deny" });
});
