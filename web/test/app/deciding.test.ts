import { expect, test } from "vitest";
import { allowOnce, choosing, decide, deciding, denyOnce, inOrder } from "../../src/app/deciding";
import { Hub } from "../../src/app/hub";
import type { Answer, Request } from "../../src/link/ports";
import type { Json } from "../../src/model/wire.gen";
import { approvalRow, OPTIONS } from "../views/approvals.rows";

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
  expect(deciding.value.get("late")).toEqual({ state: "failed", text: "Too late: allowed by phone already." });
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

test("what allows comes first, and what binds least before what binds more", () => {
  expect(inOrder(OPTIONS).map(({ optionId }) => optionId)).toEqual(["yes", "yes-always", "no"]);
});

test("an id that means yes and no is decided by yes or no", () => {
  const same = [
    { optionId: "x", name: "Yes", kind: "allow_once" },
    { optionId: "x", name: "No", kind: "reject_once" },
  ];
  expect(same.map((option) => choosing(option, same))).toEqual([{ decision: "allow" }, { decision: "deny" }]);
});

test("a letter never allows for good", () => {
  const always = [{ optionId: "ever", name: "Always", kind: "allow_always" }];
  expect(allowOnce(always)).toBeNull();
  expect(denyOnce(always)).toEqual({ decision: "deny" });
});
