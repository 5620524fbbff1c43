// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test } from "vitest";
import { keyNames, listenForKeys, register, shortcuts } from "../../src/app/shortcuts";

let pressed: string[] = [];
const stops: (() => void)[] = [];
const on = (keys: string, name = keys, when?: () => boolean) =>
  stops.push(
    register({ keys, label: name, group: "Everywhere", run: () => pressed.push(name), ...(when && { when }) }),
  );

beforeEach(() => {
  pressed = [];
  document.body.innerHTML =
    "<p tabindex=0></p><input><textarea></textarea><input type=checkbox><div contenteditable></div>";
  stops.push(listenForKeys());
});
afterEach(() => stops.splice(0).forEach((stop) => stop()));

function press(key: string, more: KeyboardEventInit = {}, at = "p"): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  document.querySelector(at)?.dispatchEvent(event);
  return event;
}

test("a key does what is registered for it, and nothing else happens", () => {
  on("j");
  expect(press("j").defaultPrevented).toBe(true);
  expect(press("k").defaultPrevented).toBe(false);
  expect(pressed).toEqual(["j"]);
});

test("who types into a field that goes away types on, until a pointer or the focus is somewhere else", () => {
  on("j");
  on("mod+k");
  const lost = () => {
    press("j", {}, "textarea");
    document.querySelector("textarea")?.remove();
    press("j", {}, "body");
    expect(pressed).toEqual([]);
    document.body.append(document.createElement("textarea"));
  };
  lost();
  press("k", { ctrlKey: true }, "body");
  expect(pressed.splice(0)).toEqual(["mod+k"]);
  lost();
  document.body.dispatchEvent(new Event("pointerdown", { bubbles: true }));
  press("j", {}, "body");
  expect(pressed.splice(0)).toEqual(["j"]);
  lost();
  press("j", {}, "p");
  expect(pressed.splice(0)).toEqual(["j"]);
  press("Escape", {}, "textarea"); // as in a dialog, which is closed by it
  document.querySelector("textarea")?.remove();
  press("j", {}, "body");
  expect(pressed).toEqual(["j"]);
});

test("no plain key acts while somebody types; one with Ctrl does", () => {
  on("j");
  on("mod+k");
  for (const field of ["input", "textarea", "[contenteditable]"]) {
    press("j", {}, field);
    press("k", { ctrlKey: true }, field);
  }
  press("j", {}, "[type=checkbox]");
  expect(pressed).toEqual(["mod+k", "mod+k", "mod+k", "j"]);
});

test("no key acts while a character is composed", () => {
  on("mod+k");
  press("k", { ctrlKey: true, isComposing: true });
  press("k", { ctrlKey: true, keyCode: 229 });
  expect(pressed).toEqual([]);
});

test("no plain key acts under a dialog", () => {
  on("a");
  on("mod+k");
  document.body.insertAdjacentHTML("beforeend", "<dialog open></dialog>");
  press("a");
  press("k", { ctrlKey: true });
  expect(pressed).toEqual(["mod+k"]);
});

test("a key with Ctrl or Alt is another key", () => {
  on("a");
  press("a", { ctrlKey: true });
  press("a", { altKey: true });
  press("a", { metaKey: true });
  expect(pressed).toEqual([]);
});

test("a sign is the same key with Shift and without, a letter is not", () => {
  on("?");
  on("j");
  press("?", { shiftKey: true });
  press("?");
  press("J", { shiftKey: true });
  expect(pressed).toEqual(["?", "?"]);
});

test("on a keyboard of another script the letter is the one in that place", () => {
  on("mod+k");
  press("л", { ctrlKey: true, code: "KeyK" });
  expect(pressed).toEqual(["mod+k"]);
});

test("the last that was registered and whose turn it is comes first", () => {
  let turn = true;
  on("j", "first");
  on("j", "second", () => turn);
  press("j");
  turn = false;
  press("j");
  expect(pressed).toEqual(["second", "first"]);
});

test("what is taken back does nothing and is in no help", () => {
  const stop = register({ keys: "x", label: "x", group: "Everywhere", run: () => pressed.push("x") });
  stop();
  press("x");
  expect(pressed).toEqual([]);
  expect(shortcuts.value).toEqual([]);
});

test("keys are named as they are written on the keyboard", () => {
  expect(keyNames("mod+shift+k")).toEqual(["Ctrl", "Shift", "K"]);
  expect(keyNames("Escape")).toEqual(["Esc"]);
});
