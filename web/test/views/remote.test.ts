// @vitest-environment jsdom
import { h } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Devices } from "../../src/views/remote/devices";
import { clock } from "../../src/ui/time";
import { digitsOf, iconOf, ownName, since, spaced } from "../../src/views/remote/naming";
import { Pair } from "../../src/views/remote/pair";
import { pathOf } from "../../src/views/remote/qr";
import { Stranger } from "../../src/views/remote/stranger";
import { row, World } from "./sessions.world";

const DEVICE = { id: "d1", name: "iPhone", scopes: ["read", "approve"], created: "", lastSeen: null, connections: 0 };
const RULE = {
  id: "r1",
  active: true,
  effect: "allow",
  scope: "project",
  scopeKey: "/shop",
  rule: { subject: "commands", pattern: "npm test" },
  madeBy: "My phone",
  created: "2026-01-01T00:00:00Z",
  expires: null,
  hits: 3,
};
const PAIRING = {
  id: "p1",
  code: "482913",
  url: "http://192.168.1.2:8/#pair=x",
  qr: ["101", "010", "111"],
  scopes: ["read"],
  expiresIn: 300,
};

let world: World;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close ??= function (this: HTMLDialogElement) {
    this.open = false;
  };
  world = new World();
  world.answer(/^GET devices/, {
    devices: [DEVICE, { ...DEVICE, id: "d2", name: "Old", revoked: "2026-01-01T00:00:00Z" }],
  });
  world.answer(/^GET whoami/, { name: "laptop", scopes: [], deviceId: "d1" });
  world.answer(/^GET rules/, { rules: [RULE] });
});
afterEach(() => {
  world.close();
  vi.useRealTimers();
});

const tick = async (milliseconds: number) => {
  act(() => void vi.advanceTimersByTime(milliseconds));
  await world.settle();
};

// -- the device's side ------------------------------------------------------------------------------------------------

async function atDoor(): Promise<void> {
  act(() => {
    location.hash = "#pair=TICKET";
    window.dispatchEvent(new Event("hashchange"));
  });
  world.show(h(Pair, {}));
  await world.settle();
}

async function enter(code: string): Promise<void> {
  world.type("#pair-code", code);
  await world.press("Pair");
}

test("a device is paired by its ticket and the code, and the ticket leaves the address", async () => {
  await atDoor();
  world.answer(/^POST pair$/, { deviceId: "d9", name: "iPhone 2", scopes: ["read", "approve"], credential: "secret" });
  world.type("#pair-name", "My phone");
  await enter("482 913");
  expect(world.asked.at(-1)?.body).toEqual({ ticket: "TICKET", code: "482913", name: "My phone" });
  expect(world.text).toContain("iPhone 2");
  expect(world.text).toContain("decide what agents ask for");
  expect(world.text).not.toContain("start sessions");
  expect(document.body.innerHTML).not.toContain("secret");
  expect(location.hash).toBe("");
  await world.press("Show the sessions");
  expect(location.hash).toBe("#/");
});

test("a wrong code says how many tries are left, and may be typed again", async () => {
  await atDoor();
  world.refuse(/^POST pair$/, 403, "code_refused", "no", { triesLeft: 1 });
  await enter("000000");
  expect(world.find("#pair-trouble").textContent).toContain("One more try is left");
  expect(world.find<HTMLInputElement>("#pair-code").value).toBe("");
  expect(document.activeElement?.id).toBe("pair-code");
});

test("after the last wrong code, and for a used ticket, only a new one helps", async () => {
  await atDoor();
  world.refuse(/^POST pair$/, 403, "code_refused", "no", { triesLeft: 0 });
  await enter("000000");
  expect(world.text).toContain("This link does not work any more");
  world.close();
  await atDoor();
  world.refuse(/^POST pair$/, 403, "ticket_refused", "no", { triesLeft: 0 });
  await enter("000000");
  expect(world.text).toContain("used already");
});

test("too few digits are not sent", async () => {
  await atDoor();
  await enter("48291");
  expect(world.asked).toEqual([]);
  expect(world.find("#pair-trouble").textContent).toContain("six digits");
});

test("a hub that cannot be reached leaves the form as it is", async () => {
  await atDoor();
  world.refuse(/^POST pair$/, 429, "too_many", "wait 10 seconds");
  await enter("482913");
  expect(world.find("#pair-trouble").textContent).toBe("wait 10 seconds.");
});

test("a stranger is told how to get in", () => {
  world.show(h(Stranger, {}));
  expect(world.text).toContain("pilothouse serve");
  expect(world.text).toContain("pilothouse pair");
});

// -- the host's side --------------------------------------------------------------------------------------------------

async function atDevices(): Promise<void> {
  world.list(row("one"));
  world.show(h(Devices, {}));
  await world.settle();
}

test("devices are listed with what they may do; those that were revoked are not", async () => {
  await atDevices();
  const list = world.find("[aria-label='Paired devices']").textContent ?? "";
  expect(list).toContain("iPhone");
  expect(list).toContain("may watch, approve");
  expect(list).toContain("this device");
  expect(list).toContain("not seen yet");
  expect(list).not.toContain("Old");
});

test("a pairing shows its code until the device has come, then says so and lists it", async () => {
  world.answer(/^POST pairings/, PAIRING);
  world.answer(/^GET pairings/, { state: "pending", expiresIn: 290, triesLeft: 5 });
  await atDevices();
  await world.press("Show the QR code");
  expect(world.asked.find((one) => one.method === "POST")?.body).toEqual({ scopes: ["read", "prompt", "approve"] });
  expect(world.find(".invite-digits").textContent).toBe("482 913");
  expect(world.find("[role=timer]").textContent).toContain("5:00");
  await tick(61_000);
  expect(world.find("[role=timer]").textContent).toContain("3:59");
  world.answer(/^GET pairings/, { state: "used", expiresIn: 200, triesLeft: 5, deviceId: null });
  await vi.advanceTimersByTimeAsync(1600);
  await world.settle();
  expect(world.text).not.toContain("Paired!"); // it is not in the list yet
  world.answer(/^GET pairings/, { state: "used", expiresIn: 200, triesLeft: 5, deviceId: "dev_1" });
  world.answer(/^GET devices/, { devices: [DEVICE, { ...DEVICE, id: "d3", name: "Tablet" }] });
  await tick(2000);
  expect(world.text).toContain("Paired!");
  expect(world.text).toContain("Tablet");
  expect(world.asked.some((one) => one.method === "DELETE")).toBe(false);
});

test("a pairing that is left is withdrawn", async () => {
  world.answer(/^POST pairings/, PAIRING);
  world.answer(/^GET pairings/, { state: "pending", expiresIn: 290, triesLeft: 5 });
  await atDevices();
  await world.press("Show the QR code");
  await world.press("Cancel");
  expect(world.asked.at(-1)).toMatchObject({ method: "DELETE", path: "pairings/p1" });
});

test("a pairing that expired or was locked says so", async () => {
  world.answer(/^POST pairings/, PAIRING);
  world.answer(/^GET pairings/, { state: "locked", expiresIn: 200, triesLeft: 0 });
  await atDevices();
  await world.press("Show the QR code");
  await tick(2000);
  expect(world.text).toContain("Too many wrong codes");
});

test("what could not be listed is listed once the hub is back", async () => {
  world.refuse(/^GET rules/, 503, "closing", "The hub is closing");
  world.refuse(/^GET devices/, 503, "closing", "The hub is closing");
  await atDevices();
  expect(world.all("[role=alert]")).toHaveLength(2);
  world.answer(/^GET devices/, { devices: [DEVICE] });
  world.answer(/^GET rules/, { rules: [RULE] });
  const { status } = world.hub;
  act(() => void (status.value = { ...status.value, phase: "reconnecting" }));
  act(() => void (status.value = { ...status.value, phase: "live" }));
  await world.settle();
  expect(world.all("[role=alert]")).toHaveLength(0);
  expect(world.text).toContain("npm test");
  expect(world.text).toContain("iPhone");
});

test("nothing is said of what this browser may do before the hub has said it", async () => {
  act(() => void (world.hub.me.value = null));
  await atDevices();
  expect(world.text).not.toContain("Only a device that may manage");
  expect(world.find("[aria-label='This browser']").textContent).not.toContain("may");
});

test("a device is renamed", async () => {
  world.answer(/^PATCH devices/, DEVICE);
  await atDevices();
  await world.press("Rename iPhone");
  world.type(".device-name input", "Ada's phone");
  await world.key(".device-name input", "Enter");
  expect(world.asked.find((one) => one.method === "PATCH")).toEqual({
    method: "PATCH",
    path: "devices/d1",
    body: { name: "Ada's phone" },
  });
});

test("revoking a device asks first, and one that fails is still listed", async () => {
  await atDevices();
  await world.press("Revoke");
  expect(world.find("dialog").textContent).toContain("the one that you are using");
  world.refuse(/^DELETE devices/, 503, "closing", "closing");
  const confirm = world.all("dialog .danger")[0];
  act(() => confirm?.click());
  await world.settle();
  expect(world.find("[aria-label='Paired devices']").textContent).toContain("iPhone");
  world.answer(/^DELETE devices/, DEVICE);
  act(() => world.all("dialog .danger")[0]?.click());
  await world.settle();
  expect(world.find("[aria-label='Paired devices']").textContent).not.toContain("iPhone");
});

test("a rule is said in words and can be taken back", async () => {
  world.answer(/^DELETE rules/, RULE);
  await atDevices();
  const rules = world.find("[aria-label='Rules']");
  expect(rules.textContent).toContain("Allow run npm test");
  expect(rules.textContent).toContain("in /shop · used 3 times");
  expect(rules.textContent).toContain("by My phone");
  act(() => rules.querySelector("button")?.click());
  await world.settle();
  expect(world.asked.at(-1)).toMatchObject({ method: "DELETE", path: "rules/r1" });
  expect(rules.textContent).toContain("No rules yet");
});

test("a rule of an earlier version says that it is wide, and can be narrowed", async () => {
  const wide = { ...RULE, text: "Call send with any arguments", isWide: true };
  world.answer(/^GET rules/, { rules: [wide] });
  world.answer(/^POST rules/, { ...wide, text: "Call send with exactly these arguments", isWide: false });
  await atDevices();
  const rules = world.find("[aria-label='Rules']");
  expect(rules.textContent).toContain("Allow Call send with any arguments");
  expect(rules.textContent).toContain("covers any arguments");
  await world.press("Limit to the approved arguments");
  expect(world.asked.at(-1)).toMatchObject({ method: "POST", path: "rules/r1/narrow" });
  expect(rules.textContent).toContain("Allow Call send with exactly these arguments");
  expect(rules.textContent).not.toContain("earlier version");
});

test("who may not manage the hub sees no devices and asks for none", async () => {
  world.close();
  world = new World(["read"]);
  world.answer(/^GET rules/, { rules: [RULE] });
  await atDevices();
  const asked = world.asked.map((one) => one.path).filter((path) => !path.startsWith("sessions?"));
  expect(asked).toEqual(["rules"]);
  expect(world.text).not.toContain("Pair a device");
  expect(world.all("[aria-label='Rules'] button")).toEqual([]);
});

// -- words ------------------------------------------------------------------------------------------------------------

test("devices are called by what their browser says", () => {
  expect(ownName("Mozilla/5.0 (iPad; CPU OS 17_0 like Mac OS X)")).toBe("iPad");
  expect(ownName("Mozilla/5.0 (Linux; Android 14)")).toBe("Android");
  expect(ownName("curl/8")).toBe("Browser");
  expect([iconOf("Ada's iPhone 2"), iconOf("Work")]).toEqual(["phone", "laptop"]);
});

test("codes and times are written as people read them", () => {
  expect([spaced("482913"), digitsOf(" 48-29 13x99")]).toEqual(["482 913", "482913"]);
  expect([clock(245_900), clock(0)]).toEqual(["4:05", "0:00"]);
  const now = Date.parse("2026-01-01T12:00:00Z");
  expect([since("2026-01-01T11:59:59Z", now), since("2026-01-01T11:00:00Z", now)]).toEqual(["just now", "1 h ago"]);
});

test("the dark modules of a QR code become boxes within its quiet zone", () => {
  expect(pathOf(["110", "001"])).toBe("M4 4h2v1h-2zM6 5h1v1h-1z");
});
