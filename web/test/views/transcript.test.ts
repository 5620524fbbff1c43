// @vitest-environment jsdom
import { render } from "preact";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { SessionEvent } from "../../src/model/wire.gen";
import { Layout } from "../../src/views/transcript/layout";
import { nextStep } from "../../src/views/transcript/next";
import { MOST } from "../../src/views/transcript/scroll";
import { copy, goldens } from "../goldens";
import { called, event, harm, Played, said, settled, shown, turn, turnEnd, until } from "./transcript.source";

/** What is fetched when it is first wanted is there from then on. */
beforeAll(async () => {
  await import("../../src/views/cards/bodies");
  await import("../../src/views/cards/artifact");
  await import("../../src/views/diff/views");
});

afterEach(() => {
  for (const place of document.body.children) render(null, place);
});

const rows = (place: ParentNode): number => place.querySelectorAll(".row").length;

/** Open everything that can be opened, what is in it as well. */
async function unfold(place: HTMLElement): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    for (const button of place.querySelectorAll<HTMLElement>("[aria-expanded='false']")) button.click();
    await settled();
  }
}

describe.each(goldens())("$name", ({ events }) => {
  test("is shown whole, folded and unfolded, and nothing in it does anything", async () => {
    const place = shown(new Played(copy(events)));
    await settled();
    const before = rows(place);
    expect(before).toBeGreaterThan(0);
    expect(harm(place)).toEqual([]);
    await unfold(place);
    expect(rows(place)).toBe(before);
    expect(harm(place)).toEqual([]);
  });

  test("shows the same whether it was there or came event by event", async () => {
    const whole = shown(new Played(copy(events)));
    await settled();
    const expected = whole.textContent;
    const source = new Played();
    const place = shown(source);
    for (const one of copy(events)) source.tell(one);
    await settled();
    expect(place.textContent).toBe(expected);
  });
});

test("what is watched as it happens ends as what is there already", async () => {
  const events = [turn("t"), ...called("c1", "mcp__harbour__tide", { port: "north" }, "high at noon")];
  const exit = { type: "command_output", command: "make", exitCode: 3, stdout: "", stderr: "" };
  events.push(event({ type: "tool:start", toolCallId: "c2", name: "Bash", category: "command" }));
  events.push(
    event({ type: "tool:result", toolCallId: "c2", name: "Bash", output: "no", duration: 5, structured: exit }),
  );
  const whole = shown(new Played(copy(events)));
  await settled();
  await unfold(whole);
  const expected = whole.textContent;
  expect(expected).toContain("high at noon");
  const source = new Played();
  const place = shown(source);
  for (const one of copy(events)) {
    source.tell(one);
    await settled();
    await unfold(place);
  }
  expect(place.textContent).toBe(expected);
});

test("a turn that another program did says so, before and after it has ended", async () => {
  const marks = (place: ParentNode) =>
    [...place.querySelectorAll(".turn-elsewhere span")].map((one) => one.textContent);
  const events = [
    ...[turn("t1"), said("user", "u1", "here"), turnEnd("t1", "end_turn")],
    ...[turn("t2", { elsewhere: true }), said("user", "u2", "there")],
  ];
  const source = new Played(copy(events));
  const place = shown(source);
  await settled();
  expect(marks(place)).toEqual(["Done in another program"]);
  const rest = [turnEnd("t2", "end_turn"), turn("t3"), said("user", "u3", "here again")];
  source.tell(...copy(rest));
  await settled();
  expect(marks(place)).toEqual(["Done in another program"]);
  const again = shown(new Played(copy([...events, ...rest])));
  await settled();
  expect(marks(again)).toEqual(["Done in another program"]);
});

const ATTACKS = [
  `<script>alert(1)</script><img src=x onerror=alert(1)>`,
  `[x](javascript:alert(1)) ![x](https://evil.example/a.png) <svg onload=alert(1)>`,
  `\u001b]8;;javascript:alert(1)\u0007x\u001b]8;;\u0007<b onclick=alert(1)>`,
  `{"<img src=x onerror=alert(1)>": "<script>alert(1)</script>"}`,
];

test.each(ATTACKS)("hostile text stays text wherever it turns up: %s", async (text) => {
  const source = new Played([
    turn("t"),
    said("user", "u", text),
    said("assistant", "a", text),
    event({ type: "thinking:complete", messageId: "th", content: text }),
    ...called("c1", text, { command: text, path: text }, text),
    ...called("c2", "Bash", { command: text }, text),
    ...called("c3", "Read", { path: text }, text),
    ...called("c4", "Grep", { pattern: text }, text),
    ...called("c5", "WebFetch", { url: `javascript:${text}` }, text),
    ...called("c6", "Task", { prompt: text }, text),
    ...called("c7", "Edit", { path: text, old_string: text, new_string: text }, text),
    event({
      type: "interaction:notification",
      level: "info",
      title: text,
      message: text,
      actionUrl: `javascript:${text}`,
    }),
    event({
      type: "session:error",
      error: { code: text, message: text, recoverable: true, details: { stderrTail: text } },
    }),
    event({ type: "progress:todo_update", todos: [{ content: text, status: "pending" }] }),
    event({ type: "custom", namespace: "acp", eventName: text, data: { [text]: text } }),
    event({
      type: "custom",
      namespace: "pilothouse",
      eventName: "artifact_created",
      data: { artifact: { id: text, path: text } },
    }),
    event({ type: "interaction:question", questionId: "q", question: text }),
    said("assistant", "b", text),
    event({
      type: "message:complete",
      messageId: "x",
      role: "assistant",
      content: [
        { type: "image", url: `https://evil.example/${text}` },
        { type: "image", url: `javascript:${text}` },
        { type: "resource", uri: `javascript:${text}`, name: text },
        { type: "audio", url: `https://evil.example/` },
        { type: "other", block: { [text]: text } },
      ],
    }),
  ]);
  const place = shown(source);
  await settled();
  await unfold(place);
  expect(harm(place)).toEqual([]);
  expect(place.textContent).toContain("alert(1)");
});

const made = (...paths: string[]): SessionEvent[] =>
  paths.map((path) =>
    event({
      type: "custom",
      namespace: "pilothouse",
      eventName: "artifact_created",
      data: { artifact: { id: path, path } },
    }),
  );

test("what was made has a card, but not a text, which the call that wrote it shows", async () => {
  const place = shown(new Played([turn("t"), ...made("/w/page.html", "/w/plan.md", "/w/main.py", "/w/notes.txt")]));
  await settled();
  const names = [...place.querySelectorAll(".artifact .call-verb")].map((one) => one.textContent);
  expect(names).toEqual(["page.html", "plan.md"]);
});

test("where no hub is, nothing is fetched of what was made", async () => {
  const place = shown(new Played([turn("t"), ...made("/w/photo.png", "/w/page.html")]));
  await settled();
  await unfold(place);
  expect(place.querySelectorAll(".artifact")).toHaveLength(2);
  expect(place.querySelectorAll(".artifact :is(a, img, iframe)")).toHaveLength(0);
});

// -- scrolling and drawing --------------------------------------------------------------------------------------------

/** As many turns as asked for, nine items each. */
function long(turns: number): SessionEvent[] {
  return Array.from({ length: turns }, (_, at) => [
    turn(`t${at}`),
    said("user", `u${at}`, `Question ${at}`),
    ...called(`c${at}`, "Read", { path: `/a/${at}.py` }),
    said("assistant", `a${at}`, `Answer **${at}**`),
    event({ type: "interaction:notification", level: "info", title: `N${at}`, message: "" }),
    said("assistant", `b${at}`, `More ${at}`),
    turnEnd(`t${at}`, "end_turn"),
  ]).flat();
}

test("of a long transcript only the end is drawn at first, and never more than a bound", async () => {
  const source = new Played(long(1000));
  expect(source.items.value.length).toBeGreaterThan(4000);
  const place = shown(source);
  expect(rows(place)).toBeLessThan(60);
  expect(place.textContent).toContain("Answer 999");
  expect(place.textContent).not.toContain("Answer 500");
  for (let at = 0; at < 200; at += 1) source.tell(turn(`n${at}`), said("assistant", `n${at}`, `New ${at}`));
  await settled();
  expect(place.querySelectorAll(".transcript-drawn").length).toBeLessThanOrEqual(MOST);
  expect(place.textContent).toContain("New 199");
});

test("an item that changes is drawn again alone", async () => {
  const source = new Played([turn("t"), ...long(5)]);
  const place = shown(source);
  source.tell(event({ type: "message:delta", messageId: "live", role: "assistant", delta: "Hello" }));
  await settled();
  await until(() => !place.querySelector(".transcript-chunk:not(.transcript-drawn)")); // filled in when there is time
  const changed = new Set<Node>();
  const watch = new MutationObserver((records) => {
    for (const { target } of records) changed.add((target as Element).closest?.(".row") ?? target);
  });
  watch.observe(place, { childList: true, characterData: true, subtree: true, attributes: true });
  source.tell(event({ type: "message:delta", messageId: "live", role: "assistant", delta: " world" }));
  await settled();
  watch.disconnect();
  expect([...changed].map((node) => node.textContent?.trim())).toEqual(["Hello world"]);
});

test("items that come leave what was laid out as it is", () => {
  const source = new Played(long(50));
  const layout = new Layout();
  layout.take(source.items.value, undefined, false);
  const before = layout.chunks.value.map((chunk) => chunk.rows.value);
  source.tell(...long(1));
  layout.take(source.items.value, undefined, false);
  const after = layout.chunks.value.map((chunk) => chunk.rows.value);
  expect(after.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
  expect(before.slice(0, -1).every((rows, at) => rows === after[at])).toBe(true);
});

test("what was not read begins with a line, and is drawn however far up it is", () => {
  const source = new Played(long(200));
  const first = source.items.value.find((item) => item.type === "message" && item.messageId === "a40")!;
  const place = shown(source, first.seq - 1);
  expect(place.querySelectorAll(".unread").length).toBe(1);
  expect(place.querySelector(".unread")!.parentElement!.textContent).toContain("Answer 40");
});

test("what was looked for is marked also when it comes only after the transcript was opened", async () => {
  const events = long(200);
  const [early, late] = [events.slice(0, 10), events.slice(10)];
  const whole = new Played(copy(events));
  const wanted = whole.items.value.find((item) => item.type === "message" && item.messageId === "a120")!;
  const source = new Played(copy(early));
  const place = shown(source, undefined, wanted.seq);
  expect(place.querySelector(".unread")).toBeNull();
  source.tell(...copy(late));
  await until(() => place.querySelector(".unread")?.parentElement?.textContent?.includes("Answer 120") ?? false);
  expect(place.querySelectorAll(".unread").length).toBe(1);
});

test("who is at the end stays there when what is drawn becomes shorter and longer at once", async () => {
  const place = shown(new Played(long(20)));
  const box = place.querySelector<HTMLElement>(".transcript-scroll")!;
  const measure = (scrollHeight: number) =>
    Object.defineProperties(box, {
      scrollHeight: { value: scrollHeight, configurable: true },
      clientHeight: { value: 500, configurable: true },
    });
  const scroll = (top: number) => {
    box.scrollTop = top;
    box.dispatchEvent(new Event("scroll"));
  };
  measure(5000);
  scroll(4500);
  measure(5080);
  scroll(4480);
  await settled();
  expect([place.querySelector(".transcript-jump"), box.scrollTop]).toEqual([null, 5080]);
  scroll(4580);
  box.dispatchEvent(new Event("wheel"));
  measure(5100);
  scroll(4400);
  await settled();
  expect([place.querySelector(".transcript-jump") !== null, box.scrollTop]).toEqual([true, 4400]);
});

test("the reader who scrolls up is left alone, and told what came", async () => {
  const source = new Played(long(20));
  const place = shown(source);
  const box = place.querySelector<HTMLElement>(".transcript-scroll")!;
  Object.defineProperties(box, {
    scrollHeight: { value: 5000, configurable: true },
    clientHeight: { value: 500, configurable: true },
  });
  box.scrollTop = 4500;
  box.dispatchEvent(new Event("scroll"));
  await settled();
  expect(place.querySelector(".transcript-jump")).toBeNull();
  box.scrollTop = 4000;
  box.dispatchEvent(new Event("scroll"));
  source.tell(said("assistant", "late", "Late words"));
  await settled();
  expect(box.scrollTop).toBe(4000);
  const jump = place.querySelector<HTMLElement>(".transcript-jump")!;
  expect(jump.textContent).toBe("Jump to latest (1 new)");
  jump.click();
  await settled();
  expect(box.scrollTop).toBe(5000);
  expect(place.querySelector(".transcript-jump")).toBeNull();
});

// -- turns, families, errors ------------------------------------------------------------------------------------------

test.each([
  ["cancelled", "Stopped"],
  ["refusal", "The agent refused to go on"],
  ["max_tokens", "limit of tokens"],
  ["interrupted", "the hub was restarted"],
  ["something_new", "Ended: something_new"],
])("a turn that ended by %s says so", async (reason, words) => {
  const place = shown(new Played([turn("t"), said("user", "u", "Go"), turnEnd("t", reason)]));
  expect(place.querySelector(".turn-end")!.textContent).toContain(words);
});

test("what goes on is said while the turn is open", async () => {
  const source = new Played([turn("t"), said("user", "u", "Go")]);
  const place = shown(source);
  expect(place.querySelector(".doing")!.textContent).toContain("Thinking…");
  source.tell(
    event({ type: "tool:start", toolCallId: "c", name: "Bash", category: "terminal" }),
    event({ type: "tool:executing", toolCallId: "c", name: "Bash", input: { command: "npm test" }, riskLevel: "low" }),
  );
  await settled();
  expect(place.querySelector(".doing")!.textContent).toContain("Running npm test…");
  source.tell(turnEnd("t", "end_turn"));
  await settled();
  expect(place.querySelector(".doing")).toBeNull();
});

test("calls of a sub-agent stand below the call that started it", async () => {
  const source = new Played([turn("t"), ...called("p", "Task", { description: "Look around" })]);
  const place = shown(source);
  source.tell(
    event({
      type: "tool:start",
      toolCallId: "k",
      name: "Read",
      category: "file_read",
      parentToolCallId: "p",
    }),
  );
  await settled();
  expect(place.querySelectorAll(".call").length).toBe(1);
  expect(place.querySelector(".call-head")!.textContent).toContain("1 step");
  place.querySelector<HTMLElement>(".call-head")!.click();
  await until(() => place.querySelectorAll(".call .call").length === 1);
});

test.each([
  [undefined, "Ran without approval"],
  [true, "Ran although denied"],
])("a call that nobody allowed is marked (denied: %s), and the word about it is no row", async (denied, chip) => {
  const source = new Played([turn("t"), ...called("c", "Bash", { command: "rm x" })]);
  const place = shown(source);
  const data = { toolCallId: "c", riskLevel: "medium", ...(denied && { denied }) };
  source.tell(event({ type: "custom", namespace: "pilothouse", eventName: "acted_without_asking", data }));
  await settled();
  expect(place.querySelector(".call-head")!.textContent).toContain(chip);
  expect(place.querySelector(".details")).toBeNull();
});

test.each([
  ["Think", { thought: "hm" }, "medium"],
  ["SwitchMode", { mode: "plan" }, "medium"],
  ["Bash", { command: "ls" }, "low"],
])("there is no warning that %s ran without approval", async (name, input, riskLevel) => {
  const source = new Played([turn("t"), ...called("c", name, input)]);
  const place = shown(source);
  const data = { toolCallId: "c", riskLevel };
  source.tell(event({ type: "custom", namespace: "pilothouse", eventName: "acted_without_asking", data }));
  await settled();
  expect(place.textContent).not.toContain("without approval");
  expect(place.querySelector(".details")).toBeNull();
});

test("what the hub notes about its queue is no part of the conversation", async () => {
  const note = (eventName: string) =>
    event({ type: "custom", namespace: "pilothouse", eventName, data: { promptId: "p" } });
  const queue = ["prompt_queued", "prompt_edited", "prompt_moved", "prompt_cancelled", "act_allowed"].map(note);
  const place = shown(new Played([turn("t"), said("user", "m", "first"), ...queue, note("policy_set")]));
  await settled();
  expect([...place.querySelectorAll(".details")].map((one) => one.textContent)).toEqual(["Detail: policy set"]);
});

test("errors say what to do next", () => {
  const error = (code: string, recoverable = true) => ({ code, message: "", recoverable });
  expect(nextStep(error("agent_died"), null)).toContain("Send a prompt to start it again");
  const limit = { retryAfter: 90, limit: "", timestamp: "2026-03-01T10:00:00Z" };
  expect(nextStep(error("rate_limited"), limit)).toMatch(/after \d/);
  expect(nextStep(error("constructor"), null)).toBe("");
  expect(nextStep(error("anything", false), null)).toContain("Start a new one");
  const details = { authMethods: [{ id: "x", name: "Log in with a key" }] };
  expect(nextStep({ ...error("auth_required"), details }, null)).toContain("Log in with a key");
  expect(nextStep({ ...error("auth_required"), details: { ...details, login: "run it once" } }, null)).toBe(
    "Then send the prompt again.",
  );
});

test("files that a prompt names stand where they were typed, and are copied so", async () => {
  const written: string[] = [];
  vi.stubGlobal("navigator", { clipboard: { writeText: async (text: string) => void written.push(text) } });
  const file = (name: string) => ({ type: "resource", uri: `file:///work/${name}`, name });
  const image = { type: "image", url: "data:image/png;base64,aaaa" };
  const content = [
    { type: "text", text: "compare " },
    file("src/a.py"),
    { type: "text", text: " with " },
    file("b.py"),
    { type: "text", text: ", please" },
    image,
  ];
  const place = shown(new Played([event({ type: "message:complete", messageId: "m", role: "user", content })]));
  await settled();
  expect(place.querySelector(".said-text")?.textContent).toBe("compare @src/a.py with @b.py, please");
  expect(place.querySelectorAll(".said-attached > *")).toHaveLength(1);
  const followed: unknown[] = [];
  place.addEventListener("file-followed", (told) => followed.push((told as CustomEvent).detail));
  place.querySelector<HTMLElement>(".said-mention")?.click();
  expect(followed).toEqual(["/work/src/a.py"]);
  place.querySelector<HTMLElement>("[aria-label='Copy message']")?.click();
  await settled();
  expect(written).toEqual(["compare @src/a.py with @b.py, please"]);
  vi.unstubAllGlobals();
});

test("hidden characters of a call are shown in its row, its title and its body", async () => {
  const events = [turn("t"), ...called("c1", "Bash", { command: "ls \u202e# \u200bmr" })];
  events.push(...called("c2", "mcp__x__y", { "na\u202eme": "va\u2066lue" }));
  const place = shown(new Played(events));
  await settled();
  await unfold(place);
  expect(place.querySelector(".call-about")?.textContent).toBe("ls U+202E# U+200Bmr");
  expect(place.querySelector(".term-command pre")?.textContent).toBe("ls U+202E# U+200Bmr");
  expect(place.querySelector(".json")?.textContent).toContain("naU+202Eme vaU+2066lue");
  expect(place.innerHTML).not.toMatch(/[\u202e\u200b\u2066]/);
});
