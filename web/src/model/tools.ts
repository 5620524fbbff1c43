/**
 * One line for people about a tool call, from its name and input: `Run: npm test`, `Read: /src/index.ts`.
 *
 * The tables of names and keys come from the hub, so both say the same. Any JSON may come in.
 */
import { fieldOf, filled, first, isObject, type JsonObject, textOf } from "./json";
import { COMMAND_KEYS, FILE_VERBS, NAME_LIMIT, PATH_KEYS, PATH_LIST_KEYS, TOOLS, VERBS } from "./tables.gen";
import type { Json } from "./wire.gen";

const SPELLINGS = new Map(TOOLS.flatMap(([name, , , spellings]) => spellings.split(" ").map((one) => [one, name])));
const SEPARATORS = /[^\p{L}\p{N}]+/gu;
const NAMESPACE = /^(?:developer|functions|default_api|builtin|container|fs|todo)(?:__|[./:])/;
const MCP_PREFIX = /^mcp[^\p{L}\p{N}]/iu;
const PATCH_FILE = /^[ \t]*\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.+)$/gm;
const SHELL_UNSAFE = /[^\w@%+=:,./-]/;

/** One name per tool (`read_file` is `Read`); a tool nobody knows keeps its own name. */
export function canonicalName(name: string): string {
  if (name.length > NAME_LIMIT || MCP_PREFIX.test(name)) return name;
  const bare = name.replace(NAMESPACE, "");
  return (!bare.includes("__") && SPELLINGS.get(bare.replace(SEPARATORS, "").toLowerCase())) || name;
}

/** A short line for people; the tool's name when there is no more to say. */
export function describeToolCall(name: string, input: Json): string {
  const tool = canonicalName(name);
  if (tool === "Bash") return line("Run", clip(firstLine(commandText(input) ?? ""), 100));
  if (Object.hasOwn(FILE_VERBS, tool)) {
    const paths = filePaths(input);
    return line(FILE_VERBS[tool]!, tool === "apply_patch" ? paths.join(", ") : (paths[0] ?? ""));
  }
  if (Object.hasOwn(VERBS, tool)) {
    const [verb, limit, keys] = VERBS[tool]!;
    const text = textOf(isObject(input) ? first(input, keys) : input);
    return line(verb, limit ? clip(text, limit) : text);
  }
  return name;
}

/** The shell text of a call: a string as it is, an argument list quoted for a shell; several commands, a line each. */
export function commandText(raw: Json): string | null {
  if (!isObject(raw)) return oneCommand(raw);
  const found = COMMAND_KEYS.map((key) => oneCommand(fieldOf(raw, key))).filter((text) => text !== null);
  const given = fieldOf(raw, "args");
  const list = given === undefined ? fieldOf(raw, "arguments") : given;
  if (found.length && Array.isArray(list) && list.length) found[0] += ` ${shellWords(list)}`;
  return [...new Set(found)].join("\n") || null;
}

function oneCommand(value: Json | undefined): string | null {
  if (typeof value === "string") return value || null;
  return Array.isArray(value) ? shellWords(value) || null : null;
}

/** An argument list as text for a shell. */
export const shellWords = (words: Json[]): string => words.map(shellWord).join(" ");

function shellWord(word: Json): string {
  const text = typeof word === "string" ? word : shown(word);
  if (!text) return "''";
  return SHELL_UNSAFE.test(text) ? `'${text.replaceAll("'", `'"'"'`)}'` : text;
}

/** As the hub writes what is no text. */
const shown = (value: Json): string =>
  value === null ? "None" : value === true ? "True" : value === false ? "False" : JSON.stringify(value);

/** Every path an input names, in order, each once. */
export function filePaths(raw: Json): string[] {
  if (typeof raw === "string") return [...new Set(patchPaths(raw))];
  if (!isObject(raw)) return [...new Set(pathsInList(raw))];
  const listed = PATH_LIST_KEYS.flatMap((key) => pathsInList(fieldOf(raw, key)));
  return [...new Set([...pathsUnder(raw), ...listed, ...patchPaths(patchText(raw) ?? "")])];
}

function patchText(raw: JsonObject): string | null {
  for (const key of ["patchText", "patch_text"]) {
    const value = fieldOf(raw, key);
    if (typeof value === "string") return value;
  }
  for (const key of ["patch", "input"]) {
    const value = fieldOf(raw, key);
    if (typeof value === "string" && value.slice(0, NAME_LIMIT).includes("*** Begin Patch")) return value;
  }
  return null;
}

const patchPaths = (patch: string): string[] =>
  [...patch.matchAll(PATCH_FILE)].map((found) => found[1]!.trim()).filter(Boolean);

function pathsUnder(raw: JsonObject): string[] {
  return PATH_KEYS.flatMap((key) => {
    const value = textOf(fieldOf(raw, key));
    if (!value || (key === "uri" && !value.startsWith("file://"))) return [];
    return [key === "uri" ? value.slice("file://".length) : value];
  });
}

function pathsInList(value: Json | undefined): string[] {
  if (isObject(value)) return Object.keys(value); // some agents key their changes by path
  if (!Array.isArray(value)) return [];
  return value.flatMap((item) =>
    isObject(item) ? pathsUnder(item) : filled(item) && typeof item === "string" ? [item] : [],
  );
}

function firstLine(text: string): string {
  const [top, ...rest] = text.trim().split("\n");
  return rest.join("\n").trim() ? `${top!.trimEnd()} …` : top!;
}

/** By characters, not halves of them. */
const clip = (text: string, limit: number): string =>
  text.length <= limit
    ? text
    : Array.from(text.slice(0, 2 * limit))
        .slice(0, limit)
        .join("");

const line = (verb: string, text: string): string => (text ? `${verb}: ${text}` : verb);
