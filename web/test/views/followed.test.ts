// @vitest-environment jsdom
import { h, render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { markdown } from "../../src/text/markdown/stream";
import { Followed, placeIn } from "../../src/views/files/followed";
import { Sheet } from "../../src/views/text/sheet";

const place = document.createElement("div");
const text = document.createElement("div");
const fetched: string[] = [];
let sheet: Sheet;

beforeEach(() => {
  document.body.replaceChildren(place, text);
  sheet = new Sheet(text);
  fetched.length = 0;
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
  vi.stubGlobal("fetch", async (url: URL) => {
    fetched.push(url.pathname);
    return new Response("print(1)\n");
  });
  render(h(Followed, { session: "s", within: "/work/app" }), place);
});
afterEach(() => {
  render(null, place);
  sheet.close();
  vi.unstubAllGlobals();
});

const links = () => [...text.querySelectorAll<HTMLElement>("a")];

test("a link to a file of the session opens it, by pointer and by key", async () => {
  sheet.show(markdown("See [it](src/my%20a.py#L3) or [this](/work/app/b.py).", String));
  expect(links().map((link) => [link.tabIndex, link.getAttribute("role")])).toEqual([
    [0, "link"],
    [0, "link"],
  ]);
  await vi.waitFor(() => {
    links()[0]!.click();
    expect(place.querySelector("dialog")).not.toBeNull();
  });
  await vi.waitFor(() => expect(place.textContent).toContain("print(1)"));
  expect(place.querySelector("h2")!.textContent).toBe("my a.py");
  expect(fetched).toEqual(["/sessions/s/files/src/my%20a.py"]);
  sheet.show(
    markdown("[by its address](file:///work/app/c%20d.py) [of a host](file://host/a) [odd](file:////a)", String),
  );
  expect(links().map((link) => link.getAttribute("data-path"))).toEqual(["/work/app/c%20d.py", null, null]);
  sheet.show(markdown("See [it](src/my%20a.py#L3) or [this](/work/app/b.py).", String));
  links()[1]!.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await vi.waitFor(() => expect(place.querySelector("h2")!.textContent).toBe("b.py"));
});

test("nothing outside of the directory is asked for", async () => {
  sheet.show(markdown("[up](../../approvals) [away](/etc/passwd) [elsewhere](https://example.org/)", String));
  for (const link of links().slice(0, 2)) {
    await vi.waitFor(() => {
      link.click();
      expect(place.querySelector("h2")?.textContent).toBe(link.dataset["path"]!.split("/").at(-1));
    });
    expect(place.textContent).toContain("It is not in the session");
  }
  links()[2]!.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  expect(fetched).toEqual([]);
});

test("a path is read as people and agents write it", () => {
  const read = (link: string) => placeIn(link, "/work/app/");
  expect(read("./a.py:12:3")).toBe("a.py");
  expect(read("/work/app/src/a.py#L1-L9")).toBe("src/a.py");
  expect(read("/work/apple/a.py")).toBe("/work/apple/a.py");
  expect(read("50%.txt")).toBe("50%.txt");
});
