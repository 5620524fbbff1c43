// @vitest-environment jsdom
import { h } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { draftOf } from "../../src/app/drafts";
import { firstChoice } from "../../src/views/sessions/agents";
import { directoryOf } from "../../src/views/sessions/directory";
import { NewSession } from "../../src/views/sessions/new";
import { startIn, troublesOf } from "../../src/views/sessions/start";
import { Refused } from "../../src/app/api";
import { read } from "../../src/app/stored";
import type { Json } from "../../src/model/wire.gen";
import { row, World } from "./sessions.world";

const AGENTS = [
  { name: "claude", title: "Claude Code", state: "installed", installed: true },
  { name: "codex", title: "Codex", state: "installed", installed: true },
  { name: "goose", title: "Goose", state: "missing", installed: false, install: "brew install goose" },
];
const entry = (path: string) => ({ name: path.split("/").at(-1) ?? "", path, isRepository: false });

let world: World;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  localStorage.clear();
  location.hash = "#/new";
});
afterEach(() => {
  world.close();
  vi.useRealTimers();
});

async function begin(scopes?: ConstructorParameters<typeof World>[0]): Promise<void> {
  world = new World(scopes);
  world.answer(/^GET agents/, { agents: AGENTS });
  world.answer(/^POST sessions/, { ...row("made") });
  world.answer(/^GET directories/, {
    path: "/home/ada",
    entries: [entry("/home/ada/api")],
    truncated: false,
    recent: ["/srv/shop"],
  });
  world.list(row("one"));
  world.show(h(NewSession, { close: undefined }));
  await world.settle();
}

const posts = () => world.asked.filter((one) => one.method === "POST");
const wait = async () => {
  act(() => void vi.advanceTimersByTime(500));
  await world.settle();
};

test("agents that are installed can be chosen, the others say how to install them", async () => {
  await begin();
  expect(world.all("[name=new-agent]").map((one) => (one as HTMLInputElement).value)).toEqual(["claude", "codex"]);
  expect(world.find(".new-others").textContent).toContain("brew install goose");
  expect(world.find<HTMLInputElement>("[name=new-agent]:checked").value).toBe("claude");
});

test("the agent that was used last is chosen, if it can still be started", () => {
  expect(firstChoice(AGENTS, "codex")).toBe("codex");
  expect(firstChoice(AGENTS, "goose")).toBe("claude");
  expect(firstChoice([], "codex")).toBe("");
});

test("a session is started as it was asked for, gets its prompt, and is gone to", async () => {
  await begin();
  world.type("#new-cwd", "/home/ada/api/");
  world.type("#new-prompt", "Say hello");
  await world.key("#new-prompt", "Enter", { ctrlKey: true });
  expect(posts()).toHaveLength(1);
  expect(posts()[0]).toMatchObject({ path: "sessions", body: { agent: "claude", cwd: "/home/ada/api", policy: {} } });
  expect(world.sent.at(-1)).toMatchObject({
    sessionId: "made",
    command: { command: "send_message", message: "Say hello" },
  });
  expect(location.hash).toBe("#/session/made");
});

test("Enter without Ctrl, or while a character is composed, starts nothing", async () => {
  await begin();
  world.type("#new-cwd", "/home/ada/api");
  await world.key("#new-prompt", "Enter");
  await world.key("#new-prompt", "Enter", { ctrlKey: true, isComposing: true });
  expect(posts()).toEqual([]);
});

test("a prompt that the hub refuses stands in the composer of the session", async () => {
  await begin();
  world.type("#new-cwd", "/home/ada/api");
  world.type("#new-prompt", "Say hello");
  await world.key("#new-prompt", "Enter", { metaKey: true });
  const { commandId } = world.sent.at(-1) ?? {};
  world.say({ type: "command_result", commandId, ok: false, error: { code: "x", message: "no", recoverable: true } });
  await world.settle();
  expect(draftOf("made").text.value).toBe("Say hello");
});

test("a prompt that the hub has not taken yet outlives the page", async () => {
  await begin();
  world.type("#new-cwd", "/home/ada/api");
  world.type("#new-prompt", "Say hello");
  await world.key("#new-prompt", "Enter", { metaKey: true });
  const { clientRequestId } = world.sent.at(-1)?.["command"] as { clientRequestId: string };
  expect(read<Json[]>("outbox:made", [])).toMatchObject([{ id: clientRequestId, prompt: "Say hello" }]);
});

test("what the hub refuses is said at the field that it names, and nothing that was typed is lost", async () => {
  await begin();
  world.refuse(/^POST sessions/, 422, "hub_error", "'/nowhere' does not exist", { field: "cwd" });
  world.type("#new-cwd", "/nowhere");
  world.type("#new-prompt", "Say hello");
  await world.press("Start");
  expect(world.find("#new-cwd-trouble").textContent).toBe("'/nowhere' does not exist");
  expect(world.find("#new-cwd").getAttribute("aria-invalid")).toBe("true");
  expect(document.activeElement?.id).toBe("new-cwd");
  expect(world.find<HTMLTextAreaElement>("#new-prompt").value).toBe("Say hello");
  expect(location.hash).toBe("#/new");
});

test("the same wish again is the same session; another one is not", async () => {
  await begin();
  world.refuse(/^POST sessions/, 503, "closing", "The hub is closing");
  world.type("#new-cwd", "/one");
  await world.press("Start");
  await world.press("Start");
  world.type("#new-cwd", "/two");
  await world.press("Start");
  const ids = posts().map((one) => (one.body as Record<string, unknown>)["client_request_id"]);
  expect(ids[0]).toBe(ids[1]);
  expect(ids[2]).not.toBe(ids[0]);
  expect(world.text).toContain("The hub is closing");
});

test("a directory that is missing or not whole is said before the hub is asked", async () => {
  await begin();
  world.type("#new-cwd", "");
  await world.press("Start");
  expect(world.find("#new-cwd-trouble").textContent).toContain("which directory");
  world.type("#new-cwd", "shop");
  await world.press("Start");
  expect(world.find("#new-cwd-trouble").textContent).toContain("whole path");
  expect(posts()).toEqual([]);
});

test("only who manages the hub chooses a policy; for others the hub's default holds", async () => {
  await begin(["read", "prompt"]);
  expect(world.all("[name=new-policy]")).toEqual([]);
  world.type("#new-cwd", "/shop");
  await world.press("Start");
  expect(posts()[0]?.body).not.toHaveProperty("policy");
});

test("a device that may only watch is told so", async () => {
  await begin(["read"]);
  expect(world.text).toContain("may watch, but not start sessions");
});

test("recent directories are offered first, and completion goes on from directory to directory", async () => {
  await begin();
  act(() => world.find("#new-cwd").click());
  await wait();
  expect(world.all("[role=option]").map((one) => one.textContent)).toEqual([
    "shop/srv/shop",
    "shop/home/ada/shop",
    "api",
  ]);
  world.type("#new-cwd", "/home/ada/a");
  await wait();
  expect(world.all("[role=option]").map((one) => one.textContent)).toEqual(["api"]);
  await world.key("#new-cwd", "ArrowDown");
  expect(world.find("#new-cwd").getAttribute("aria-activedescendant")).toBe("new-cwd-list-0");
  await world.key("#new-cwd", "Enter");
  expect(world.find<HTMLInputElement>("#new-cwd").value).toBe("/home/ada/api/");
  await world.key("#new-cwd", "Escape");
  expect(world.all("[role=option]")).toEqual([]);
  expect(posts()).toEqual([]);
});

test("a path below home is made whole by the hub", async () => {
  await begin();
  world.answer(/^GET directories\?path=~%2Fshop%2F/, {
    path: "/home/ada/shop",
    entries: [],
    truncated: false,
    recent: [],
  });
  world.type("#new-cwd", "~/shop");
  await world.press("Start");
  expect(posts()[0]?.body).toMatchObject({ cwd: "/home/ada/shop" });
});

test("a directory that was chosen elsewhere stands in the form", async () => {
  await begin();
  act(() => void (startIn.value = "/srv/blog"));
  await world.settle();
  expect(world.find<HTMLInputElement>("#new-cwd").value).toBe("/srv/blog");
});

test("agents that could not be listed are listed once the hub is back, and what was typed stays", async () => {
  await begin();
  world.close();
  world.refuse(/^GET agents/, 503, "closing", "The hub is closing");
  world.show(h(NewSession, { close: undefined }));
  await world.settle();
  expect(world.find("#new-agent-trouble").textContent).toContain("The hub is closing");
  world.type("#new-prompt", "Mend it");
  const { status } = world.hub;
  act(() => void (status.value = { ...status.value, phase: "reconnecting" }));
  world.answer(/^GET agents/, { agents: AGENTS });
  act(() => void (status.value = { ...status.value, phase: "live" }));
  await world.settle();
  expect(world.find<HTMLInputElement>("[name=new-agent]:checked").value).toBe("claude");
  expect(world.all("#new-agent-trouble").map((one) => one.textContent)).not.toContain("The hub is closing");
  expect(world.find<HTMLTextAreaElement>("#new-prompt").value).toBe("Mend it");
});

test("refusals find their field", () => {
  const refused = (code: string, details: Record<string, string> | null) =>
    troublesOf(new Refused(422, { code, message: "no", recoverable: true, details }));
  expect(refused("unknown_agent", null)).toEqual({ agent: "no" });
  expect(refused("invalid", { field: "policy.autoApprove.reads" })).toEqual({ policy: "no" });
  expect(refused("invalid", { field: "somewhere" })).toEqual({ form: "no" });
});

test("a slash at the end is no part of a directory, but the root is one", () => {
  expect([directoryOf("/a/b/"), directoryOf("/"), directoryOf(" /a//")]).toEqual(["/a/b", "/", "/a"]);
});
