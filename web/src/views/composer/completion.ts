/** What is being completed at the caret: a command at the beginning of the text, or a file after an `@`. */
import { isObject, textOf } from "../../model/json";
import type { Json } from "../../model/wire.gen";

export interface Trigger {
  kind: "command" | "file";
  query: string;
  /** Where the sign stands, and where the words after it end. */
  from: number;
  to: number;
}

export interface Suggestion {
  /** What is put in place of the sign and the words after it. */
  insert: string;
  title: string;
  about: string;
  /** A directory goes on being completed. */
  more?: boolean;
  /** A file to be linked. */
  path?: string;
}

const COMMAND = /^\/([^\s/]*)$/;
/** Names may have spaces in them; whether one has is for the files to say. */
const FILE = /(?:^|[\s([{"'])@((?:[^\s@][^\n@]{0,200})?)$/;

export function triggerAt(text: string, caret: number): Trigger | null {
  const before = text.slice(0, caret);
  const command = COMMAND.exec(before);
  if (command) return { kind: "command", query: command[1] ?? "", from: 0, to: caret };
  const file = FILE.exec(before);
  return file ? { kind: "file", query: file[1] ?? "", from: caret - (file[1] ?? "").length - 1, to: caret } : null;
}

/** The agent's commands that fit, those that begin with the words first. */
export function commandsFor(query: string, offered: readonly Json[]): Suggestion[] {
  const wanted = query.toLowerCase();
  const all = offered.filter(isObject).flatMap((command) => {
    const name = textOf(command["name"]).replace(/^\//, "");
    const hint = isObject(command["input"]) ? textOf(command["input"]["hint"]) : "";
    return name ? [{ name, hint, about: textOf(command["description"]) }] : [];
  });
  const fits = (name: string) => rank(name.toLowerCase(), wanted);
  return all
    .filter(({ name }) => fits(name) < NO)
    .sort((one, other) => fits(one.name) - fits(other.name))
    .map(({ name, hint, about }) => ({ insert: `/${name} `, title: hint ? `/${name} ${hint}` : `/${name}`, about }));
}

const NO = 4;

/** 0 begins with it, 1 a part begins with it, 2 has it, 3 has its letters in order. */
export function rank(text: string, wanted: string): number {
  if (text.startsWith(wanted)) return 0;
  const place = text.indexOf(wanted);
  if (place > 0) return /[^a-z0-9]/.test(text[place - 1] ?? "") ? 1 : 2;
  let from = 0;
  for (const letter of wanted) {
    from = text.indexOf(letter, from) + 1;
    if (!from) return NO;
  }
  return 3;
}

/** It goes on behind a space: a file's name, or only the next word of the text. */
export const isSpaced = (query: string): boolean => /\s/.test(query);

export interface Entry {
  path: string;
  directory: boolean;
}

/** Files and directories that fit, by name before path, short before long. */
export function filesFor(query: string, entries: readonly Entry[], most = 50): Suggestion[] {
  const wanted = query.toLowerCase();
  // words after a name are no letters to be looked for one by one
  const worst = isSpaced(query) ? 2.5 : NO - 0.5;
  const scored = entries.flatMap((entry) => {
    const path = entry.path.toLowerCase();
    const score = Math.min(rank(path.slice(path.lastIndexOf("/") + 1), wanted), rank(path, wanted) + 0.5);
    const inside = query.endsWith("/") && path.startsWith(wanted) ? -1 : score;
    return inside <= worst ? [{ entry, score: inside }] : [];
  });
  scored.sort((one, other) => one.score - other.score || one.entry.path.length - other.entry.path.length);
  return scored.slice(0, most).map(({ entry: { path, directory } }) => ({
    insert: directory ? `@${path}/` : `@${path} `,
    title: path.slice(path.lastIndexOf("/") + 1) + (directory ? "/" : ""),
    about: path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "",
    ...(directory ? { more: true } : { path }),
  }));
}
