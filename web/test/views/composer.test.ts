// @vitest-environment jsdom
import { h } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Draft, draftOf } from "../../src/app/drafts";
import { outboxOf } from "../../src/app/outbox";
import { read, write } from "../../src/app/stored";
import { CommandFailed } from "../../src/link/link";
import type { Json } from "../../src/model/wire.gen";
import { filesFor, triggerAt } from "../../src/views/composer/completion";
import { Composer } from "../../src/views/composer/composer";
import { Place } from "./approvals.world";

type Told = { type: string; [field: string]: Json };

let place: Place;
let session = 0;
let queue: Json[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  localStorage.clear();
  queue = [];
});

afterEach(async () => {
  place.leave();
  await pass(100);
  vi.useRealTimers();
});

const pass = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);
const field = () => place.one<HTMLTextAreaElement>("textarea");

/** Each test has a session of its own: drafts outlive views. */
async function compose(scopes?: string[], id = `ses_${(session += 1)}`): Promise<void> {
  place = new Place(scopes ? { id, scopes } : { id });
  place.answer = ({ path }) => ({ status: 200, body: path.includes("?items=false") ? { queue } : null });
  place.happen({
    type: "session:started",
    agent: "demo",
    workingDirectory: "/work/app",
    projectPath: "",
    projectName: "",
  });
  place.show(h(Composer, {}));
  await pass(60);
}

async function type(text: string): Promise<void> {
  field().value = text;
  field().setSelectionRange(text.length, text.length);
  field().dispatchEvent(new Event("input", { bubbles: true }));
  await pass(60);
}

async function key(name: string, init: KeyboardEventInit = {}, target: EventTarget = field()): Promise<boolean> {
  const event = new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...init });
  target.dispatchEvent(event);
  await pass(60);
  return event.defaultPrevented;
}

const sent = () => place.commands.filter(({ command }) => command === "send_message").map(({ message }) => message);
const failing = (message: string) => () =>
  Promise.reject(new CommandFailed({ code: "unfit_content", message, recoverable: true }));

test("Enter sends what was typed, once, and the field is free for the next", async () => {
  await compose();
  place.command = () => new Promise(() => {});
  await type("hello");
  expect(await key("Enter")).toBe(true);
  await key("Enter");
  expect(place.commands).toEqual([{ command: "send_message", message: "hello", clientRequestId: "id-1" }]);
  expect(field().value).toBe("");
  expect(place.one(".composer-sending").textContent).toContain("helloSending…");
});

test("Enter that chooses a character sends nothing", async () => {
  await compose();
  await type("にほん");
  expect(await key("Enter", { isComposing: true })).toBe(false);
  expect(await key("Enter", { keyCode: 229 })).toBe(false);
  expect(sent()).toEqual([]);
  await key("Enter", { keyCode: 13 });
  expect(sent()).toEqual(["にほん"]);
});

test("Shift+Enter is a new line, Ctrl+Enter and Cmd+Enter send", async () => {
  await compose();
  await type("one");
  expect(await key("Enter", { shiftKey: true })).toBe(false);
  await key("Enter", { ctrlKey: true });
  await type("two");
  await key("Enter", { metaKey: true });
  expect(sent()).toEqual(["one", "two"]);
});

test("a finger's Enter is a new line, and the button sends", async () => {
  vi.stubGlobal("matchMedia", () => ({ matches: true }));
  await compose();
  await type("one");
  expect(await key("Enter")).toBe(false);
  place.button("Send").click();
  expect(sent()).toEqual(["one"]);
  vi.unstubAllGlobals();
});

test("nothing is not sent", async () => {
  await compose();
  await type("  \n ");
  await key("Enter");
  expect(sent()).toEqual([]);
  expect(place.button("Send").disabled).toBe(true);
});

test("a draft is there again, and gone once the hub has it", async () => {
  await compose();
  await type("half a thought");
  await pass(400);
  const { id } = place.open;
  expect(new Draft(id).text.value).toBe("half a thought");
  place.leave();
  await compose(undefined, id);
  expect(field().value).toBe("half a thought");
  place.command = async () => ({ turnId: "t1" });
  await key("Enter");
  await pass(400);
  expect(read(`draft:${id}`, null)).toBeNull();
  expect(read(`outbox:${id}`, null)).toBeNull();
});

test("what the hub refuses is back in the field, before what was typed meanwhile, and says why", async () => {
  await compose();
  let refuse = (_: unknown): void => {};
  place.command = () => new Promise((_, reject) => (refuse = reject));
  await type("a picture");
  await key("Enter");
  await type("and more");
  refuse(new CommandFailed({ code: "unfit_content", message: "demo takes no images", recoverable: true }));
  await pass(60);
  expect(field().value).toBe("a picture\n\nand more");
  expect(place.one("[role=alert]").textContent).toContain("Not sent: demo takes no images");
  expect(place.all(".composer-sending")).toHaveLength(0);
});

test("a message on its way is shown once: until the transcript has it, whatever comes first", async () => {
  await compose();
  let take = (_: Json): void => {};
  place.command = () => new Promise((resolve) => (take = resolve));
  await type("hello");
  await key("Enter");
  const said: Told[] = [
    { type: "custom", namespace: "pilothouse", eventName: "turn_started", data: { turnId: "t1" } },
    { type: "message:start", messageId: "m", role: "user" },
    {
      type: "message:complete",
      messageId: "m",
      role: "user",
      content: [{ type: "text", text: "hello" }],
      stopReason: "",
    },
  ];
  place.happen(...said);
  await pass(60);
  expect(place.all(".composer-sending")).toHaveLength(0);
  take({ turnId: "t1" });
  await pass(60);
  expect(place.all(".composer-sending")).toHaveLength(0);

  await type("again");
  await key("Enter");
  take({ turnId: "t2" });
  await pass(60);
  expect(place.one(".composer-sending").textContent).toContain("againSent");
  place.tell("turn_ended", { turnId: "t1", stopReason: "end_turn" });
  place.tell("turn_started", { turnId: "t2" });
  await pass(60);
  expect(place.all(".composer-sending")).toHaveLength(0);
});

test("a message that was on its way when the page went is sent again under its id; an old one is a draft", async () => {
  const [fresh, old] = [`ses_${(session += 1)}`, `ses_${(session += 1)}`];
  const kept = { id: "before", prompt: "hello", text: "hello", mentions: [], at: Date.now() - 5000 };
  write(`outbox:${fresh}`, [kept]);
  write(`outbox:${old}`, [{ ...kept, at: Date.now() - 3_600_000 }]);
  await compose(undefined, fresh);
  expect(place.commands).toEqual([{ command: "send_message", message: "hello", clientRequestId: "before" }]);
  place.leave();
  await compose(undefined, old);
  expect(place.commands).toEqual([]);
  expect(field().value).toBe("hello");
});

test("while a turn runs what is sent is queued, and the queue is what the hub says", async () => {
  await compose();
  place.tell("turn_started", { turnId: "t1" });
  await pass(60);
  expect(place.button("Queue").textContent).toBe("Queue");
  queue = [
    { promptId: "p1", content: [{ type: "text", text: "first" }] },
    { promptId: "p2", content: [{ type: "text", text: "second" }] },
  ];
  place.tell("prompt_queued", { promptId: "p1", content: [], clientRequestId: null });
  await pass(60);
  expect(place.all(".composer-queue li").map((one) => one.textContent)).toEqual(["first", "second"]);

  place.button("Later").click();
  await pass(60);
  expect(place.commands.at(-1)).toEqual({ command: "move_queued", promptId: "p1", position: 1 });
  place.all('[aria-label="Remove"]').at(-1)?.click();
  await pass(60);
  expect(place.commands.at(-1)).toEqual({ command: "cancel_queued", promptId: "p2" });

  // its turn begins: the transcript shows it, so the queue does not, even before it is read again
  place.answer = () => new Promise(() => {});
  place.tell("turn_ended", { turnId: "t1", stopReason: "end_turn" });
  place.tell("turn_started", { turnId: "p1" });
  await pass(60);
  expect(place.all(".composer-queue li").map((one) => one.textContent)).toEqual(["second"]);
});

test("↑ in an empty field edits the last prompt that waits; Esc leaves it as it was", async () => {
  await compose();
  queue = [{ promptId: "p1", content: [{ type: "text", text: "waiting" }] }];
  place.tell("turn_started", { turnId: "t1" });
  await pass(60);
  await type("x");
  await key("ArrowUp");
  expect(field().value).toBe("x");
  await type("");
  await key("ArrowUp");
  expect(field().value).toBe("waiting");
  await key("Escape");
  expect(field().value).toBe("");
  expect(place.commands).toEqual([]);
  await key("ArrowUp");
  await type("waiting no more");
  await key("Enter");
  expect(place.commands).toEqual([{ command: "edit_queued", promptId: "p1", message: "waiting no more" }]);
  expect(field().value).toBe("");
});

test("a prompt that begins while it is edited is not edited any more, and nothing typed is lost", async () => {
  await compose();
  queue = [{ promptId: "p1", content: [{ type: "text", text: "waiting" }] }];
  place.tell("turn_started", { turnId: "t1" });
  await pass(60);
  await key("ArrowUp");
  await type("waiting, changed");
  queue = [];
  place.tell("turn_started", { turnId: "p1" });
  await pass(100);
  expect(place.text).toContain("has begun");
  expect(field().value).toBe("waiting, changed");
  expect(place.button("Queue")).toBeTruthy();
});

test("what was in the field before a prompt was edited is there again, however the editing ends", async () => {
  await compose();
  queue = [{ promptId: "p1", content: [{ type: "text", text: "waiting" }] }];
  place.tell("turn_started", { turnId: "t1" });
  await pass(60);
  await type("half a thought");
  place.button("Edit").click();
  await pass(60);
  expect(field().value).toBe("waiting");
  const { id } = place.open;
  place.leave();
  await pass(60);
  expect(draftOf(id).text.value).toBe("half a thought");

  await compose(undefined, id);
  place.tell("turn_started", { turnId: "t1" });
  await pass(60);
  place.button("Edit").click();
  await pass(60);
  queue = [];
  place.tell("turn_started", { turnId: "p1" });
  await pass(100);
  expect(field().value).toBe("waiting\n\nhalf a thought");
});

test("↑ without a queue brings back what was said last", async () => {
  await compose();
  const content = [{ type: "text", text: "said before" }];
  place.happen({ type: "message:complete", messageId: "m", role: "user", content, stopReason: "" });
  await pass(60);
  await key("ArrowUp");
  expect(field().value).toBe("said before");
});

test("who stops a turn is told what runs next, and can take it back", async () => {
  await compose();
  place.tell("turn_started", { turnId: "t1" });
  queue = ["p1", "p2", "p3"].map((promptId) => ({ promptId, content: [{ type: "text", text: promptId }] }));
  place.tell("prompt_queued", { promptId: "p1", content: [], clientRequestId: null });
  await pass(60);
  place.button("Stop").click();
  await pass(60);
  expect(place.text).toContain("3 queued prompts run next");
  queue = queue.slice(1);
  place.tell("turn_ended", { turnId: "t1", stopReason: "cancelled" });
  place.tell("turn_started", { turnId: "p1" });
  await pass(60);
  expect(place.text).toContain("2 queued prompts run next");
  place.button("Remove them").click();
  await pass(60);
  expect(place.commands.slice(1)).toEqual([
    { command: "cancel_queued", promptId: "p2" },
    { command: "cancel_queued", promptId: "p3" },
  ]);
  expect(place.text).not.toContain("run next");
});

test("Esc stops, again it forces, and it says how far it is until the turn has ended", async () => {
  await compose();
  await key("Escape", {}, document.body);
  expect(place.commands).toEqual([]);
  place.tell("turn_started", { turnId: "t1" });
  await pass(60);
  place.command = () => new Promise(() => {});
  await key("Escape");
  expect(place.commands).toEqual([{ command: "cancel" }]);
  expect(place.text).toContain("Stopping… press again to force. The hub ends the agent in 10 s");
  await pass(4000);
  expect(place.text).toContain("in 6 s");
  await key("Escape", {}, document.body);
  await key("Escape", {}, document.body);
  expect(place.commands).toEqual([{ command: "cancel" }, { command: "cancel", force: true }]);
  expect(place.text).toContain("Ending the agent…");
  place.tell("turn_ended", { turnId: "t1", stopReason: "cancelled" });
  await pass(60);
  expect(place.text).not.toContain("Ending");
  expect(place.all('[aria-label="Stop"]')).toHaveLength(0);
});

test.each([
  ["still runs", "t1", 2],
  ["is over, and another one runs", "t2", 1],
])("a stop while the hub is away waits until it is back; the turn %s", async (_, running, asked) => {
  await compose();
  place.tell("turn_started", { turnId: "t1" });
  await pass(60);
  place.command = () =>
    Promise.reject(new CommandFailed({ code: "lost", message: "The hub is out of reach", recoverable: true }));
  place.hub.status.value = { phase: "reconnecting", lane: "socket", seen: 0 };
  place.button("Stop").click();
  await pass(60);
  expect(place.text).toContain("Stopping as soon as the hub is reached again…");
  place.command = async () => ({});
  place.answer = () => ({ status: 200, body: { queue, turn: { turnId: running, open: true, startedAt: "" } } });
  place.hub.status.value = { phase: "live", lane: "socket", seen: 0 };
  await pass(60);
  expect(place.commands).toEqual(Array.from({ length: asked }, () => ({ command: "cancel" })));
});

test("a stop that did not work says so, and the next press asks again", async () => {
  await compose();
  place.tell("turn_started", { turnId: "t1" });
  await pass(60);
  place.command = failing("the log is full");
  place.button("Stop").click();
  await pass(60);
  expect(place.text).toContain("Not stopped: the log is full. Press again.");
  place.button("Stop").click();
  expect(place.commands).toEqual([{ command: "cancel" }, { command: "cancel" }]);
});

const COMMANDS: Json[] = [
  { name: "help", description: "lists the commands" },
  { name: "echo", description: "says TEXT", input: { hint: "TEXT" } },
];

test("the agent's commands are offered at the beginning, chosen by keys, and not in the middle", async () => {
  await compose();
  place.happen({
    type: "custom",
    namespace: "acp",
    eventName: "available_commands_update",
    data: { availableCommands: COMMANDS },
  });
  await type("and /e");
  expect(place.all("[role=option]")).toHaveLength(0);
  await type("/");
  expect(place.all("[role=option]").map((one) => one.textContent)).toEqual([
    "/helplists the commands",
    "/echo TEXTsays TEXT",
  ]);
  await key("ArrowDown");
  expect(await key("Tab")).toBe(true);
  expect(field().value).toBe("/echo ");
  expect(sent()).toEqual([]);
  await type("/help");
  await key("Enter");
  expect(sent()).toEqual(["/help"]);
  await type("/");
  await key("Escape");
  expect(place.all("[role=option]")).toHaveLength(0);
  expect(place.commands).toHaveLength(1);
});

test("a file is found below the session's directory, and goes as a link", async () => {
  await compose();
  const listings: Record<string, Json> = {
    ".": [
      { name: "src", path: "src", kind: "directory" },
      { name: "node_modules", path: "node_modules", kind: "directory" },
    ],
    src: [{ name: "parser.py", path: "src/parser.py", kind: "file" }],
  };
  const looked: string[] = [];
  place.answer = ({ path }) => {
    const where = new URL(path, "http://h").searchParams.get("path") ?? "";
    looked.push(where);
    return { status: 200, body: { entries: listings[where] ?? [] } };
  };
  await type("look at @pars");
  await pass(100);
  expect(place.all("[role=option]").map((one) => one.textContent)).toEqual(["parser.pysrc"]);
  expect(looked).toEqual([".", "src"]);
  await key("Enter");
  expect(field().value).toBe("look at @src/parser.py ");
  expect(place.one(".composer-attached").textContent).toContain("parser.py");
  await key("Enter");
  expect(sent()).toEqual([
    [
      { type: "text", text: "look at " },
      { type: "resource_link", uri: "file:///work/app/src/parser.py", name: "src/parser.py" },
    ],
  ]);
});

test("a picture that is pasted is shown, can be taken out, and is sent with the words", async () => {
  await compose();
  const paste = async (name: string) => {
    const event = new Event("paste", { bubbles: true, cancelable: true });
    const files = [new File([new Uint8Array([1, 2, 3])], name, { type: "image/png" })];
    Object.assign(event, { clipboardData: { files } });
    vi.useRealTimers();
    field().dispatchEvent(event);
    await vi.waitFor(() => expect(place.all(`img[alt="${name}"]`)).toHaveLength(1));
    vi.useFakeTimers();
  };
  await paste("a.png");
  await paste("b.png");
  place.button("Remove a.png").click();
  draftOf(place.open.id).type("see");
  await pass(60);
  place.button("Send").click();
  expect(sent()).toEqual([
    [
      { type: "text", text: "see" },
      { type: "image", data: "AQID", mimeType: "image/png" },
    ],
  ]);
  expect(outboxOf(place.hub, place.open.id).sending.value).toHaveLength(1);
});

test("words that a picture of them comes along with are pasted as words", async () => {
  await compose();
  const event = new Event("paste", { bubbles: true, cancelable: true });
  const files = [new File([new Uint8Array([1])], "image.png", { type: "image/png" })];
  Object.assign(event, { clipboardData: { files, types: ["text/plain", "text/html", "text/rtf", "Files"] } });
  field().dispatchEvent(event);
  await pass(60);
  expect(event.defaultPrevented).toBe(false);
  expect(draftOf(place.open.id).pictures.value).toEqual([]);
});

test("a mode that is chosen is on its way until the session says so", async () => {
  await compose();
  const modes = {
    currentModeId: "ask",
    availableModes: [
      { id: "ask", name: "Ask" },
      { id: "code", name: "Code" },
    ],
  };
  place.happen({ type: "custom", namespace: "acp", eventName: "session_setup", data: { modes } });
  await pass(60);
  const select = place.one<HTMLSelectElement>("select");
  select.value = "code";
  select.dispatchEvent(new Event("change", { bubbles: true }));
  await pass(60);
  expect(place.commands).toEqual([{ command: "set_mode", modeId: "code" }]);
  expect(select.disabled).toBe(true);
  place.happen({ type: "custom", namespace: "acp", eventName: "current_mode_update", data: { currentModeId: "code" } });
  await pass(100);
  expect(select.disabled).toBe(false);
  expect(select.value).toBe("code");
});

test("a mode that is refused goes back to what it was", async () => {
  await compose();
  const option = { id: "mode", category: "mode", name: "Mode", type: "select", currentValue: "ask" };
  const options: Json[] = [
    { value: "ask", name: "Ask" },
    { group: "g", name: "More", options: [{ value: "code", name: "Code" }] },
  ];
  place.happen({
    type: "custom",
    namespace: "acp",
    eventName: "session_setup",
    data: { configOptions: [{ ...option, options }], modes: { currentModeId: "ask", availableModes: [{ id: "ask" }] } },
  });
  await pass(60);
  expect(place.all("select")).toHaveLength(1);
  place.command = failing("not now");
  const select = place.one<HTMLSelectElement>("select");
  select.value = "code";
  select.dispatchEvent(new Event("change", { bubbles: true }));
  await pass(100);
  expect(place.commands).toEqual([{ command: "set_config_option", optionId: "mode", value: "code" }]);
  expect(select.value).toBe("ask");
});

test("a device that may not prompt, and a session that is over, say so", async () => {
  await compose(["read", "approve"]);
  expect(field().disabled).toBe(true);
  expect(place.text).toContain("may watch, but not write");
  place.tell("turn_started", { turnId: "t1" });
  await pass(60);
  expect(place.all(".composer-stop")).toEqual([]);
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  expect(place.commands).toEqual([]);
  place.leave();
  await compose();
  place.happen({ type: "session:completed", summary: {} });
  await pass(60);
  expect(field().disabled).toBe(true);
  expect(place.text).toContain("This session is over. Start another one");
});

test("a paused session can be resumed", async () => {
  await compose();
  place.happen({ type: "session:paused" });
  await pass(60);
  place.button("Resume").click();
  await pass(0);
  expect(place.commands).toEqual([{ command: "resume" }]);
});

test("context and cost are told in figures", async () => {
  await compose();
  place.happen(
    { type: "resource:context_window", used: 50_000, limit: 200_000, percentage: 25 },
    { type: "resource:cost", delta: { total: 1, currency: "USD" }, cumulative: { total: 1.5, currency: "XX?" } },
  );
  await pass(60);
  expect(place.one(".composer-meter summary").getAttribute("title")).toBe(
    "Context: 50k of 200k tokens (25 %)\nCost: 1.50 XX?",
  );
});

test("a file whose name has spaces is completed over them, and other words are left alone", () => {
  const entries = ["docs/my old notes.md", "docs/mynotes.md", "a.py"].map((path) => ({ path, directory: false }));
  const offered = (text: string) => {
    const trigger = triggerAt(text, text.length);
    return trigger && filesFor(trigger.query, entries).map(({ insert }) => insert);
  };
  expect(offered("see @my o")).toEqual(["@docs/my old notes.md "]);
  expect(offered("see @docs/my old n")).toEqual(["@docs/my old notes.md "]);
  expect(offered("see @my")).toHaveLength(2);
  expect(offered("see @a.py and")).toEqual([]);
  expect(offered("see @docs/my old notes.md ")).toEqual([]);
  expect(offered("see @ my")).toBeNull();
  expect(offered("@my\nold")).toBeNull();
});

test("what another tab has on its way stays there", async () => {
  await compose();
  const id = place.open.id;
  const other = { id: "theirs", prompt: "from there", text: "from there", mentions: [], at: Date.now() };
  let answer: (value: null) => void = () => {};
  place.command = () => new Promise((resolve) => (answer = resolve));
  await type("mine");
  await key("Enter");
  write(`outbox:${id}`, [...read<Json[]>(`outbox:${id}`, []), other]);
  await type("mine too");
  await key("Enter");
  const ids = () => read<{ id: string }[]>(`outbox:${id}`, []).map((one) => one.id);
  expect(ids().sort()).toEqual(["id-1", "id-2", "theirs"]);
  answer(null);
  await pass(10);
  expect(ids()).toContain("theirs");
  expect(ids()).not.toContain("id-2");
});

test("a directory that is dropped is said to be none that can be sent, and nothing is asked of the hub", async () => {
  const asked = vi.fn();
  vi.stubGlobal("fetch", asked);
  const { upload } = await import("../../src/views/composer/pictures");
  const directory = new File(["x"], "src");
  directory.slice = () => ({ arrayBuffer: () => Promise.reject(new Error("NotReadableError")) }) as unknown as Blob;
  await expect(upload("s", directory)).rejects.toThrow(
    "src cannot be read; a directory has to be dropped file by file",
  );
  expect(asked).not.toHaveBeenCalled();
  vi.unstubAllGlobals();
});
