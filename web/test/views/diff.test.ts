// @vitest-environment jsdom
import { type ComponentChild, h, render } from "preact";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Changes, type ChangedFile, FileChangeView, PreviewDiff } from "../../src/views/diff/changes";
import { Diff, Patch } from "../../src/views/diff/diff";
import * as lazy from "../../src/views/diff/lazy";
import { chosen, roomOf, wrapped } from "../../src/views/diff/layout";
import { SourceContext } from "../../src/views/text/source";

/** Machines can be busy, and the grammars take a moment to load. */
const eventually = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 30_000 });

const root = document.createElement("div");
document.body.append(root);
const find = (selector: string): HTMLElement[] => [...root.querySelectorAll<HTMLElement>(selector)];
const texts = (selector: string): string[] => find(selector).map((one) => one.textContent ?? "");
const numbered = (count: number): string => Array.from({ length: count }, (_, line) => `line ${line}\n`).join("");
const labelled = (label: string): HTMLElement[] => find(`button[aria-label="${label}"]`);
const button = (text: string): HTMLElement | undefined => find("button").find((one) => one.textContent?.includes(text));
const show = async (view: ComponentChild): Promise<void> => {
  render(view, root);
  await eventually(() => expect(find(".diff, .code").length).toBeGreaterThan(0));
  await Promise.resolve(); // the width is known only now, and rows are drawn for it
  await Promise.resolve();
};
/** Rows as they are read: numbers, words for signs, code. */
const rows = (): string[] =>
  find("[role=row]").map((row) => [...row.children].map((cell) => spoken(cell as HTMLElement)).join("|"));
const spoken = (cell: HTMLElement): string => cell.dataset["line"] ?? (cell.textContent ?? "").replace(/\n$/, "");

beforeEach(() => {
  chosen.value = "auto";
  wrapped.value = true;
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockImplementation(() => width);
});
afterEach(() => {
  render(null, root);
  vi.restoreAllMocks();
  width = 500;
});
let width = 500;

const before = numbered(60);
const after = before.replace("line 10\n", "line ten\n").replace("line 50\n", "");

describe("one column", () => {
  test("has numbers, words for the signs, marked words and folds", async () => {
    await show(h(Diff, { path: "a/b.txt", before, after }));
    expect(rows().slice(0, 6)).toEqual([
      "Show 7 unchanged lines",
      ...["8|8|line 7", "9|9|line 8", "10|10|line 9", "11||removed: line 10", "|11|added: line ten"],
    ]);
    expect(texts(".diff-word")).toEqual(["10", "ten"]);
    expect(find(".diff-counts")[0]?.getAttribute("aria-label")).toBe("1 added, 2 removed");
    expect(texts(".diff-counts")).toEqual(["+1−2"]);
  });

  test("gaps open step by step, or at once", async () => {
    const far = numbered(200).replace("line 0\n", "line zero\n");
    await show(h(Diff, { path: "a", before: numbered(200), after: far }));
    expect(find("[role=row]")).toHaveLength(2 + 3 + 1);
    expect(labelled("Show 20 more lines upwards")).toHaveLength(0); // nothing is below the last gap
    labelled("Show 20 more lines downwards")[0]?.click();
    await eventually(() => expect(rows()).toContain("24|24|line 23"));
    expect(rows().at(-1)).toBe("Show 176 unchanged lines");
    button("Show 176 unchanged lines")?.click();
    await eventually(() => expect(rows().at(-1)).toBe("200|200|line 199"));
    expect(find(".diff-gap")).toHaveLength(0);
    expect(document.activeElement).toBe(find(".diff-body")[0]);
  });

  test("a gap that opened leaves the others as they were", async () => {
    await show(h(Diff, { path: "a", before, after }));
    expect(find(".diff-gap")).toHaveLength(3);
    button("Show 33 unchanged lines")?.click();
    await eventually(() => expect(find(".diff-gap")).toHaveLength(2));
    button("Show 7 unchanged lines")?.click();
    await eventually(() => expect(find(".diff-gap")).toHaveLength(1));
    expect(rows()[0]).toBe("1|1|line 0");
  });

  test("colours come later, to both sides", async () => {
    await show(h(Diff, { path: "a.py", before: 'x = """\nold\n"""\n', after: 'x = """\nnew\n"""\n' }));
    await eventually(() => expect(texts(".tok-string")).toEqual(['"""', "old", "new", '"""']));
  });
});

describe("two columns", () => {
  beforeEach(() => {
    width = 1000;
  });

  test("are there where there is room: old on the left, new on the right", async () => {
    await show(h(Diff, { path: "a", before: "a\nb\nc\n", after: "a\nx\ny\nc\n" }));
    expect(rows()).toEqual(["1|a|1|a", "2|removed: b|2|added: x", "||3|added: y", "3|c|4|c"]);
  });

  test("can be left and come back, and that is kept", async () => {
    await show(h(Diff, { path: "a", before: "a\n", after: "b\n" }));
    labelled("Side by side")[0]?.click();
    await eventually(() => expect(find(".diff-split")).toHaveLength(0));
    expect(localStorage.getItem("pilothouse:diff-layout")).toBe('"unified"');
    labelled("Wrap long lines")[0]?.click();
    await eventually(() => expect(find(".diff-long")).toHaveLength(1));
    labelled("Side by side")[0]?.click();
    await eventually(() => expect(find(".diff-split")).toHaveLength(1));
  });

  test("are not for a file that has one side only", async () => {
    await show(h(Diff, { path: "a", before: null, after: "a\n" }));
    expect(find(".diff-split")).toHaveLength(0);
    expect(texts(".chip")).toEqual(["New"]);
  });

  test("a selection stays on the side where it began", async () => {
    await show(h(Diff, { path: "a", before: "a\n", after: "b\n" }));
    find(".diff-code.diff-right")[0]?.dispatchEvent(new MouseEvent("mousedown", { bubbles: true }));
    expect(find(".diff-only-right")).toHaveLength(1);
  });

  test.each([
    [390, "split", "unified", false],
    [500, "auto", "unified", true],
    [500, "split", "split", true],
    [720, "auto", "split", true],
    [900, "unified", "unified", true],
  ] as const)("%i pixels and the choice %s: %s", (pixels, choice, layout, can) => {
    expect(roomOf(pixels, choice)).toEqual({ layout, choice: can });
  });
});

describe("a patch", () => {
  test("has its numbers, its headings, and gaps that cannot be opened", async () => {
    const patch = "--- a/x.py\n+++ b/x.py\n@@ -5,2 +5,2 @@ def f():\n a\n-b\n+c\n";
    await show(h(Patch, { path: "/work/x.py", patch }));
    expect(rows()).toEqual(["4 unchanged lines not showndef f():", "5|5|a", "6||removed: b", "|6|added: c"]);
    expect(find(".diff-expand")).toHaveLength(0);
    expect(texts(".diff-path")).toEqual(["/work/x.py"]);
  });

  test("of several files shows each by its name", async () => {
    const one = (name: string) => `--- a/${name}\n+++ b/${name}\n@@ -1 +1 @@\n-a\n+b\n`;
    await show(h(Patch, { path: "ignored", patch: one("x") + one("y/z") }));
    expect(texts(".diff-path")).toEqual(["x", "y/z"]);
  });

  test("that is none is shown as it is", async () => {
    await show(h(PreviewDiff, { preview: { type: "diff", path: "x", diff: "replace <b>all</b>" } }));
    expect(texts(".code-line")).toEqual(["replace <b>all</b>\n"]);
  });

  test.each([
    ["Binary files a/x and b/x differ\n", "A binary file: there are no lines to compare.", "Binary"],
    ["new file mode 100644\nindex 0..1\n", "The new file is empty.", "New"],
    ["deleted file mode 100644\n", "The deleted file was empty.", "Deleted"],
    ["rename from x\nrename to y\n", "Renamed; its lines are the same.", "Renamed"],
  ])("without lines says why: %j", async (patch, words, chip) => {
    await show(h(Patch, { path: "x", patch: `diff --git a/x b/x\n${patch}` }));
    expect(texts(".diff-note")).toEqual([words]);
    expect(texts(".chip")).toEqual([chip]);
    expect(find(".diff-counts")).toHaveLength(0);
  });
});

describe("what is odd", () => {
  test("a missing line end is said", async () => {
    await show(h(Diff, { path: "a", before: "a\n", after: "a" }));
    expect(texts(".diff-bare")).toEqual(["no newline at end of file"]);
  });

  test("line ends of another system are said once, and marked where they differ", async () => {
    await show(h(Diff, { path: "a", before: "a\r\nb\r\n", after: "a\r\nc\r\n" }));
    expect(texts(".chip")).toEqual(["CRLF"]);
    expect(rows()).toEqual(["1|1|a", "2||removed: b", "|2|added: c"]);
    await show(h(Diff, { path: "a", before: "a\r\n", after: "a\n" }));
    expect(rows()).toEqual(["1||removed: aCR", "|1|added: a"]);
  });

  test("markup stays text, and what turns the direction is shown and warned of", async () => {
    const path = "<img src=x onerror=hit()>/\u202e.js";
    await show(h(Diff, { path, before: "a\n", after: "<script>hit()</script>\u202e\0\n" }));
    expect(find("script, img")).toHaveLength(0);
    expect(rows().at(-1)).toBe("|1|added: <script>hit()</script>U+202ENUL");
    expect(texts(".diff-warn")).toHaveLength(1);
    expect(texts(".diff-name")).toEqual(["U+202E.js"]);
    expect(root.innerHTML).not.toMatch(/[\u202e\0]/);
  });

  test("a line of a million characters is cut until it is asked for", async () => {
    await show(h(Diff, { path: "a", before: null, after: `${"y".repeat(1_000_000)}\n` }));
    expect(root.textContent?.length).toBeLessThan(2000);
    button("show whole line (1M characters)")?.click();
    await eventually(() => expect(root.textContent?.length).toBeGreaterThan(1_000_000));
  });
});

describe("large files", () => {
  const seen: { show(target: Element): void; targets: Set<Element> }[] = [];
  class Watcher {
    targets = new Set<Element>();
    constructor(readonly callback: (entries: unknown[]) => void) {
      seen.push(this);
    }
    show(target: Element): void {
      this.callback([{ isIntersecting: true, target }]);
    }
    observe(target: Element): void {
      this.targets.add(target);
    }
    unobserve(target: Element): void {
      this.targets.delete(target);
    }
  }

  test("draw what comes near the screen, and say what is left out", async () => {
    vi.stubGlobal("IntersectionObserver", Watcher);
    await show(h(Diff, { path: "a", before: null, after: numbered(20_000) }));
    expect(find("[role=row]")).toHaveLength(100);
    expect(find(".diff-chunk")).toHaveLength(50);
    const last = find(".diff-chunk").at(-1) as HTMLElement;
    await eventually(() => expect(seen[0]?.targets.has(last)).toBe(true));
    seen[0]?.show(last);
    await eventually(() => expect(rows().at(-1)).toBe("|5000|added: line 4999"));
    expect(texts(".diff-note")[0]).toContain("15,000 more rows are not shown.");
    button("Show anyway")?.click();
    await eventually(() => expect(find(".diff-chunk")).toHaveLength(200));
    expect(find("[role=row]").length).toBeLessThan(1000);
    vi.unstubAllGlobals();
  });
});

describe("changes of several files", () => {
  const diff = "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n+c\n";
  const files: ChangedFile[] = [
    { path: "x", changeType: "modified", diff },
    { path: "y", changeType: "created", linesAdded: 7, linesRemoved: 0 },
    { path: "big", before: "", after: numbered(400) },
  ];

  test("are summed up; big ones are folded", async () => {
    await show(h(Changes, { files }));
    expect(texts(".diff-sum")).toEqual(["3 files+409−1Unfold all"]);
    expect(find("[aria-expanded]").map((one) => one.getAttribute("aria-expanded"))).toEqual(["true", "true", "false"]);
    labelled("Unfold big")[0]?.click();
    await eventually(() => expect(rows()).toContain("|400|added: line 399"));
    button("Fold all")?.click();
    await eventually(() => expect(rows()).toEqual([]));
  });

  test("one file alone has neither sum nor fold", async () => {
    await show(h(Changes, { files: files.slice(0, 1) }));
    expect(find(".diff-sum, [aria-expanded]")).toHaveLength(0);
  });

  test("a change of which only the name is known says so", async () => {
    await show(h(FileChangeView, { change: { path: "src/y", changeType: "deleted" } }));
    expect(texts(".diff-note")).toEqual([
      "Which lines is not told: the agent did not say, or it is too much to compare.",
    ]);
    expect(texts(".chip")).toEqual(["Deleted"]);
  });

  test.each([
    ["created", "The new file is empty."],
    ["modified", "No line was changed."],
  ] as const)("a file that was %s without a line says so", async (changeType, words) => {
    await show(h(FileChangeView, { change: { path: "src/y", changeType, linesAdded: 0, linesRemoved: 0 } }));
    expect(texts(".diff-note")).toEqual([words]);
  });

  test("a file that a diff only names says that its change is not shown", async () => {
    const named = "--- a/b.txt\n+++ b/b.txt\n";
    await show(h(Patch, { path: "a.txt", patch: `${diff}${named}--- /dev/null\n+++ b/new.txt\n` }));
    expect(texts(".diff-note")).toEqual(Array(2).fill("The change of this file is not shown."));
  });

  test("a diff that the hub cut says how much is missing", async () => {
    const change = { path: "x", changeType: "modified" as const, diff, linesAdded: 100, linesRemoved: 1 };
    await show(h(FileChangeView, { change }));
    expect(texts(".diff-note")[0]).toContain("98 changed lines are not in it");
    expect(texts(".diff-counts")).toEqual(["+100−1"]);
  });
});

test("the lazy views have room and a name at once, and the diff when it is loaded", async () => {
  await show(h(lazy.Diff, { path: "a/b.txt", before: "a\n", after: "b\n" }));
  expect(texts(".diff-head")).toEqual(["a/b.txt"]);
  await eventually(() => expect(rows()).toEqual(["1||removed: a", "|1|added: b"]));
});

test("a file of the session's directory is named from there; what is copied is its whole path", async () => {
  const session = { peek: () => ({ fields: { workingDirectory: "/work/app/" } }) };
  const around = (view: ComponentChild) => h(SourceContext.Provider, { value: { session } as never }, view);
  await show(around(h(Diff, { path: "/work/app/src/a.py", before: "a\n", after: "b\n" })));
  expect(texts(".diff-path")).toEqual(["src/a.py"]);
  expect(find(".diff-path")[0]!.title).toBe("/work/app/src/a.py");
  await show(around(h(Diff, { path: "/work/apple/a.py", before: "a\n", after: "b\n" })));
  expect(texts(".diff-path")).toEqual(["/work/apple/a.py"]);
});
