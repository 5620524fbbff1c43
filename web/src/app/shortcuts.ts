/**
 * The keys of the page, in one registry: who listens for a key says here what it does, and the help shows just that.
 *
 * A plain key never acts while somebody types, composes a character, or has a dialog open; one with Ctrl or Cmd does.
 * Who types into a field that goes away, as its question was answered elsewhere, types on for a moment: that decides
 * nothing.
 * Of two that have the same key, the one that was registered last comes first; `when` decides whether it is its turn.
 */
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Shortcut {
  /** `j`, `?`, `Escape`, `mod+k` (Cmd on a Mac, else Ctrl), `mod+shift+p`. */
  keys: string;
  /** What it does, for the help: `Next session`. */
  label: string;
  group: "Everywhere" | "Sessions" | "Session" | "Approvals" | "Composer";
  when?(): boolean;
  run(event: KeyboardEvent): void;
}

/** What lies over the page, if anything. */
export type Panel = "palette" | "help" | "settings" | "rename" | "archive";
export const panel = signal<Panel | null>(null);

export const shortcuts = signal<readonly Shortcut[]>([]);

export function register(...added: Shortcut[]): () => void {
  shortcuts.value = [...added.toReversed(), ...shortcuts.peek()];
  return () => {
    shortcuts.value = shortcuts.peek().filter((one) => !added.includes(one));
  };
}

/** Keys that act while the view is there. What they do may change from drawing to drawing; the keys may not. */
export function useShortcuts(wanted: readonly Shortcut[]): void {
  const now = useRef(wanted);
  now.current = wanted;
  // a key acts as soon as what it is for can be seen
  useLayoutEffect(() => {
    const stable = wanted.map((one, at) => ({
      ...one,
      when: () => now.current[at]?.when?.() ?? true,
      run: (event: KeyboardEvent) => now.current[at]?.run(event),
    }));
    return register(...stable);
  }, []);
}

/** Listen for all keys of the page. Gives the way to stop that. */
export function listenForKeys(target: Window = window): () => void {
  target.addEventListener("keydown", press);
  target.addEventListener("pointerdown", pointed, true);
  return () => {
    target.removeEventListener("keydown", press);
    target.removeEventListener("pointerdown", pointed, true);
  };
}

export function press(event: KeyboardEvent): void {
  if (isTypingOn(event)) return;
  if (event.defaultPrevented || isComposing(event)) return;
  const pressed = keysOf(event);
  if (!pressed.startsWith("mod+") && (isTyping(event.target) || document.querySelector("dialog[open]"))) return;
  const found = shortcuts.peek().find((one) => one.keys === pressed && (one.when?.() ?? true));
  if (!found) return;
  event.preventDefault();
  found.run(event);
}

/** Who points at something has seen what is there. */
const pointed = (): void => {
  typed = null;
};

/** Milliseconds between two keys of somebody who types. */
const TYPING = 1500;
let typed: { into: HTMLElement; at: number } | null = null;

/** Whether the key was meant for a field that is not there any more. */
function isTypingOn(event: KeyboardEvent): boolean {
  const { target, ctrlKey, metaKey } = event;
  const now = Date.now();
  if (isTyping(target)) typed = isLeaving(event) ? null : { into: target as HTMLElement, at: now };
  else if (target !== document.body || typed?.into.isConnected || (typed && now - typed.at > TYPING)) typed = null;
  else if (typed) typed.at = now;
  return typed !== null && !typed.into.isConnected && !ctrlKey && !metaKey;
}

/** Who presses this in a field is done with it; an Enter that the field took for itself has sent what was in it. */
const isLeaving = ({ key, target, ctrlKey, metaKey, defaultPrevented }: KeyboardEvent): boolean =>
  key === "Escape" ||
  key === "Tab" ||
  (key === "Enter" && (ctrlKey || metaKey || defaultPrevented || target instanceof HTMLInputElement));

/** Whether nobody has typed into a field for a moment. */
export const isIdle = (field: Element): boolean => typed?.into !== field || Date.now() - typed.at > TYPING;

/** Some browsers end a composition before its last key; that one has the code 229. */
export const isComposing = (event: KeyboardEvent): boolean => event.isComposing || event.keyCode === 229;

const isMac = (): boolean => /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "");

/** What was pressed, as `Shortcut.keys` has it. */
function keysOf(event: KeyboardEvent): string {
  const mod = isMac() ? event.metaKey : event.ctrlKey;
  const other = isMac() ? event.ctrlKey : event.metaKey;
  const key = keyOf(event);
  // a sign such as ? needs Shift on one keyboard and not on the next
  const shift = event.shiftKey && (key.length > 1 || /[a-z]/.test(key));
  return [mod && "mod+", other && "other+", event.altKey && "alt+", shift && "shift+", key].filter(Boolean).join("");
}

// on a keyboard of another script the letter is the one in that place
function keyOf({ key, code }: KeyboardEvent): string {
  if (key.length !== 1) return key;
  const place = /^Key([A-Z])$/.exec(code)?.[1];
  return (/[^\x20-\x7e]/.test(key) && place ? place : key).toLowerCase();
}

const SILENT = new Set(["checkbox", "radio", "button", "submit", "reset", "range", "color", "file"]);

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !SILENT.has(target.type);
  return target.matches("textarea, select, [contenteditable]:not([contenteditable='false'])");
}

const NAMES: Readonly<Record<string, string>> = {
  Escape: "Esc",
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  " ": "Space",
};

/** The parts to be shown, each on a key of its own: `["⌘", "K"]`. */
export function keyNames(keys: string): string[] {
  const mods: Record<string, string> = { mod: isMac() ? "⌘" : "Ctrl", shift: isMac() ? "⇧" : "Shift", alt: "Alt" };
  return keys.split("+").map((part) => mods[part] ?? NAMES[part] ?? (part.length === 1 ? part.toUpperCase() : part));
}
