// @vitest-environment jsdom
import { expect, test } from "vitest";
import { draftOf } from "../../src/app/drafts";
import { read, wipe, write } from "../../src/app/stored";

test("after a logout nothing is kept, not even what the page writes when it is left", () => {
  write("theme", "dark");
  localStorage.setItem("another program's", "stays");
  draftOf("ses_1").type("a secret");
  wipe();
  write("theme", "light");
  window.dispatchEvent(new Event("pagehide"));
  expect(Object.keys(localStorage)).toEqual(["another program's"]);
  expect(read("theme", "system")).toBe("system");
});
