import { expect, test } from "vitest";
import { parseRoute } from "../../src/app/route";
import { addressOf, cacheName, isOutdated, treatmentOf } from "../../src/worker/treatment";

const files = new Set(["assets/main-A.js", "icon.svg"]);

test.each([
  ["http://hub/", "navigate", "page"],
  ["http://hub/#/session/1", "navigate", "page"],
  ["http://hub/assets/main-A.js", "cors", "file"],
  ["http://hub/icon.svg", "no-cors", "file"],
  ["http://hub/assets/main-B.js", "cors", "leave"],
  ["http://hub/sessions", "cors", "leave"],
  ["http://hub/sessions/1/events", "cors", "leave"],
  ["http://hub/?x", "navigate", "leave"],
  ["http://hub/login?ticket=1", "navigate", "leave"],
  ["http://hub/assets/main-A.js", "navigate", "leave"],
  ["http://other/assets/main-A.js", "no-cors", "leave"],
])("%s by %s", (url, mode, treatment) => {
  expect(treatmentOf({ method: "GET", url, mode }, "http://hub/", files)).toBe(treatment);
});

test("below a path", () => {
  const asked = (url: string, mode = "cors") => treatmentOf({ method: "GET", url, mode }, "https://site/hub/", files);
  expect(asked("https://site/hub/", "navigate")).toBe("page");
  expect(asked("https://site/hub/icon.svg")).toBe("file");
  expect(asked("https://site/icon.svg")).toBe("leave");
  expect(asked("https://site/", "navigate")).toBe("leave");
});

test.each(["POST", "PUT", "DELETE", "HEAD"])("%s is left alone", (method) => {
  expect(treatmentOf({ method, url: "http://hub/icon.svg", mode: "cors" }, "http://hub/", files)).toBe("leave");
});

test("only earlier versions of the same place are outdated", () => {
  const scope = "https://site/hub/";
  expect(isOutdated(cacheName(scope, "1"), scope, "2")).toBe(true);
  expect(isOutdated(cacheName(scope, "2"), scope, "2")).toBe(false);
  expect(isOutdated(cacheName("https://site/", "1"), scope, "2")).toBe(false);
  expect(isOutdated(cacheName("https://site/hub/inner/", "1"), scope, "2")).toBe(false);
  expect(isOutdated("somebody else's", scope, "2")).toBe(false);
});

test("a notification leads to where the page shows its session", () => {
  const address = new URL(addressOf("https://site/hub/", "ses/1"));
  expect(address.href.startsWith("https://site/hub/#")).toBe(true);
  expect(parseRoute(address.hash)).toEqual({ view: "session", id: "ses/1" });
});
