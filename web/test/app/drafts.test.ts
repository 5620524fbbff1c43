// @vitest-environment jsdom
import { beforeEach, expect, test, vi } from "vitest";
import { fileUri, mentionsIn, picturesIn, promptOf, wordsOf } from "../../src/app/commands";
import { Draft, draftOf } from "../../src/app/drafts";
import { read, write } from "../../src/app/stored";
import type { Json } from "../../src/model/wire.gen";

beforeEach(() => localStorage.clear());

const PICTURE = { id: "1", name: "a.png", mimeType: "image/png", data: "AAAA" };

test("a draft is kept after a moment, and another page finds it", () => {
  vi.useFakeTimers();
  const draft = new Draft("ses_a");
  draft.type("Mend ");
  draft.type("Mend @src/a.py");
  draft.mention("src/a.py");
  draft.mention("src/never.py");
  expect(read("draft:ses_a", null)).toBeNull();
  vi.advanceTimersByTime(400);
  const later = new Draft("ses_a");
  expect(later.text.value).toBe("Mend @src/a.py");
  expect(later.mentions.value).toEqual(["src/a.py"]);
  expect(new Draft("ses_b").text.value).toBe("");
  vi.useRealTimers();
});

test("a page that goes away writes what was typed last", () => {
  draftOf("ses_p").type("almost lost");
  window.dispatchEvent(new Event("pagehide"));
  expect(new Draft("ses_p").text.value).toBe("almost lost");
});

test("a page that goes away leaves alone what another one has typed since", () => {
  draftOf("ses_q"); // it was only looked at here
  const sent = draftOf("ses_r");
  sent.type("sent from there by now");
  sent.flush();
  const other = new Draft("ses_q");
  other.type("typed in the other tab");
  other.flush();
  new Draft("ses_r").clear();
  window.dispatchEvent(new Event("pagehide"));
  expect(new Draft("ses_q").text.value).toBe("typed in the other tab");
  expect(new Draft("ses_r").text.value).toBe("");
});

test("what is cleared is not kept", () => {
  const draft = new Draft("ses_c");
  draft.type("x");
  draft.flush();
  draft.clear();
  expect(read("draft:ses_c", null)).toBeNull();
});

test("what comes back stands before what was typed meanwhile", () => {
  const draft = new Draft("ses_d");
  draft.type("second");
  draft.restore("first", ["a"], [PICTURE]);
  expect(draft.text.value).toBe("first\n\nsecond");
  expect(draft.pictures.value).toEqual([PICTURE]);
});

test("what is stored by somebody else is no draft", () => {
  write("draft:ses_e", { text: 5, mentions: "x" });
  const draft = new Draft("ses_e");
  expect(draft.text.value).toBe("");
  expect(draft.mentions.value).toEqual([]);
});

test("plain words are sent as they are", () => {
  expect(promptOf("  hello\nworld ", [], [], "/p")).toBe("hello\nworld");
  expect(promptOf("mail me @home", ["src/a"], [], "/p")).toBe("mail me @home");
});

test("a file is linked where it is mentioned, and the longer path wins", () => {
  expect(promptOf("see @a/b.py, not @a/b", ["a/b", "a/b.py"], [PICTURE], "/my dir/")).toEqual([
    { type: "text", text: "see " },
    { type: "resource_link", uri: "file:///my%20dir/a/b.py", name: "a/b.py" },
    { type: "text", text: ", not " },
    { type: "resource_link", uri: "file:///my%20dir/a/b", name: "a/b" },
    { type: "image", data: "AAAA", mimeType: "image/png" },
  ]);
  expect(fileUri("/", "x#y")).toBe("file:///x%23y");
});

test("a prompt that comes back reads as it was typed", () => {
  const content: Json[] = [
    { type: "text", text: "see " },
    { type: "resource", uri: "file:///p/a.py", name: "a.py" },
    { type: "image", url: "data:image/png;base64,AAAA", mimeType: "image/png" },
  ];
  expect(wordsOf(content)).toBe("see @a.py");
  expect(mentionsIn(content)).toEqual(["a.py"]);
  expect(picturesIn(content)).toMatchObject([{ mimeType: "image/png", data: "AAAA" }]);
});
