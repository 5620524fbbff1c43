/**
 * What a tool call is for people: of which kind, in which words, about what. Pure.
 *
 * The tool's name says most, then the agent's own word for the kind, then the category.
 */
import { lineCounts } from "../../model/files";
import { first, isObject, textOf } from "../../model/json";
import { canonicalName, commandText, filePaths } from "../../model/tools";
import { VERBS } from "../../model/tables.gen";
import type { Json, ToolCall } from "../../model/wire.gen";
import type { IconName } from "../../ui/icon";

export type Kind =
  | "bash"
  | "read"
  | "list"
  | "edit"
  | "delete"
  | "move"
  | "search"
  | "web"
  | "agent"
  | "todo"
  | "think"
  | "mode"
  | "question"
  | "git"
  | "mcp"
  | "other";

const named = (table: Partial<Record<Kind, string>>): ReadonlyMap<string, Kind> =>
  new Map(Object.entries(table).flatMap(([kind, names]) => names.split(" ").map((name) => [name, kind as Kind])));

const BY_NAME = named({
  bash: "Bash BashOutput KillShell",
  read: "Read",
  list: "LS",
  edit: "Write Edit MultiEdit NotebookEdit apply_patch",
  delete: "Delete",
  move: "Move",
  search: "Glob Grep Search",
  web: "WebFetch WebSearch",
  agent: "Task",
  todo: "TodoWrite TodoRead",
  think: "Think",
  mode: "ExitPlanMode EnterPlanMode SwitchMode",
  question: "AskUserQuestion",
  git: "Git",
});

const BY_WORD = named({
  bash: "execute terminal",
  read: "read file_read",
  edit: "edit file_edit file_write",
  delete: "delete",
  move: "move",
  search: "search",
  web: "fetch web",
  agent: "agent",
  think: "think",
  mode: "switch_mode",
  git: "git",
  mcp: "mcp",
});

export function kindOf(call: Pick<ToolCall, "name" | "kind" | "category" | "subAgentId">): Kind {
  if (call.subAgentId !== undefined || call.category === "agent") return "agent";
  const known = BY_NAME.get(canonicalName(call.name));
  if (known) return known;
  if (call.category === "mcp" || /^mcp[^a-z0-9]/i.test(call.name)) return "mcp";
  return BY_WORD.get(call.kind ?? "") ?? BY_WORD.get(call.category) ?? "other";
}

/** Icon, and the verb of what will be done, is being done, was done. */
export const WORDS: Readonly<Record<Kind, readonly [icon: IconName, will: string, now: string, done: string]>> = {
  bash: ["terminal", "Run", "Running", "Ran"],
  read: ["read", "Read", "Reading", "Read"],
  list: ["folder", "List", "Listing", "Listed"],
  edit: ["edit", "Edit", "Editing", "Edited"],
  delete: ["archive", "Delete", "Deleting", "Deleted"],
  move: ["folder", "Move", "Moving", "Moved"],
  search: ["search", "Search", "Searching", "Searched"],
  web: ["web", "Fetch", "Fetching", "Fetched"],
  agent: ["agent", "Delegate", "Delegated", "Delegated"],
  todo: ["list", "Update the plan", "Updating the plan", "Updated the plan"],
  think: ["think", "Think", "Thinking", "Thought"],
  mode: ["tool", "Switch mode", "Switching mode", "Switched mode"],
  question: ["question", "Ask", "Asking", "Asked"],
  git: ["git", "Git", "Git", "Git"],
  mcp: ["plug", "Use", "Using", "Used"],
  other: ["tool", "", "", ""],
};

export interface Head {
  kind: Kind;
  icon: IconName;
  verb: string;
  /** What it is about: a file, a command, a query. */
  about: string;
  /** The whole of it, where `about` is shorter. */
  whole: string;
  mono: boolean;
}

export function headOf(call: ToolCall, cwd = ""): Head {
  const kind = kindOf(call);
  const [icon, will, now, done] = WORDS[kind];
  const tense = call.status === "executing" ? now : call.status === "completed" ? done : will;
  const subject = SUBJECTS[kind]?.(call, cwd) ?? "";
  const whole = subject || plainTitle(call);
  const about = whole.split("\n", 1)[0]!.slice(0, 300);
  // a title of the agent's own begins with a verb
  const verb = subject || WORDLESS.has(kind) ? (VERB_OF_TOOL[canonicalName(call.name)]?.(call) ?? tense) : "";
  const search = kind === "search" || kind === "web" || kind === "agent" || kind === "other" || kind === "mcp";
  return { kind, icon, verb, about: WORDLESS.has(kind) && !subject ? "" : about, whole, mono: !!subject && !search };
}

/** Kinds that need no object. */
const WORDLESS: ReadonlySet<Kind> = new Set(["todo"]);

const VERB_OF_TOOL: Readonly<Record<string, (call: ToolCall) => string>> = {
  WebSearch: (call) => (call.status === "executing" ? "Searching the web for" : "Searched the web for"),
  Write: (call) => (call.status === "executing" ? "Writing" : call.status === "completed" ? "Wrote" : "Write"),
  TodoRead: () => "Read the plan",
};

const SUBJECTS: Partial<Record<Kind, (call: ToolCall, cwd: string) => string>> = {
  bash: (call) => commandOf(call),
  read: (call, cwd) => `${pathsOf(call, cwd)[0] ?? ""}${linesOf(call)}`,
  list: (call, cwd) => pathsOf(call, cwd)[0] ?? "",
  edit: (call, cwd) => several(pathsOf(call, cwd)),
  delete: (call, cwd) => several(pathsOf(call, cwd)),
  move: (call, cwd) => pathsOf(call, cwd).slice(0, 2).join(" → "),
  search: (call) => said(call.input, VERBS["Grep"]![2]) || said(call.input, VERBS["Glob"]![2]),
  web: (call) => webOf(call),
  agent: (call) => said(call.input, VERBS["Task"]![2]),
  mcp: (call) => call.name.replace(/^mcp__?/i, "").replace(/__/g, " · "),
};

const said = (input: Json | undefined, keys: readonly string[]): string =>
  isObject(input) ? textOf(first(input, keys)) : "";

function webOf({ web, input }: ToolCall): string {
  const done = web?.[0];
  if (done) return done.kind === "search" ? done.query : done.url;
  return said(input, VERBS["WebFetch"]![2]) || said(input, VERBS["WebSearch"]![2]);
}

/** The command, as far as it is known; a title may be nothing but the command in backticks. */
export function commandOf(call: ToolCall): string {
  const command = call.input === undefined ? null : commandText(call.input);
  return command?.trim() || (/^`([^`]+)`$/.exec(call.title ?? "")?.[1] ?? "");
}

const plainTitle = (call: ToolCall): string =>
  (call.title || (call.description !== call.name && call.description) || call.name || "Tool call").replace(
    /^`([^`]+)`$/,
    "$1",
  );

/** Files that the call changed, or names, or is at; as short as the working directory allows. */
export function pathsOf(call: ToolCall, cwd: string): string[] {
  const changed = call.files?.map((change) => change.path);
  if (changed?.length) return [...new Set(changed)].map((path) => short(path, cwd));
  const told = call.input === undefined ? [] : filePaths(call.input);
  // where the agent is says less than its own words
  const found = told.length || call.title ? told : locationsOf(call).map((place) => place.path);
  return [...new Set(found)].map((path) => short(path, cwd));
}

export interface Location {
  path: string;
  line: number | null;
}

export function locationsOf(call: ToolCall): Location[] {
  return (call.locations ?? []).filter(isObject).flatMap((place) => {
    const path = textOf(place["path"]);
    return path ? [{ path, line: typeof place["line"] === "number" ? place["line"] : null }] : [];
  });
}

export const short = (path: string, cwd: string): string => {
  const root = cwd.replace(/\/+$/, "");
  return root && path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
};

const several = (paths: string[]): string => (paths.length > 2 ? `${paths.length} files` : paths.join(", "));

/** The first line that was asked for, where it was. */
export function firstLineOf({ input }: ToolCall): number {
  const from = isObject(input) ? first(input, ["offset", "start_line", "startLine", "line"]) : undefined;
  return typeof from === "number" && from > 0 ? Math.floor(from) : 1;
}

function linesOf(call: ToolCall): string {
  if (!isObject(call.input)) return "";
  const from = firstLineOf(call);
  const [count, end] = [first(call.input, ["limit"]), first(call.input, ["end_line", "endLine"])];
  const last = typeof end === "number" ? end : typeof count === "number" ? from + count - 1 : 0;
  return last > from ? `:${from}–${last}` : from > 1 ? `:${from}` : "";
}

/** Lines that the call added and removed, in all files. */
export function countsOf(call: ToolCall): [added: number, removed: number] | null {
  if (!call.files?.length) return null;
  return call.files
    .map(lineCounts)
    .reduce(([added, removed], [plus, minus]) => [added + plus, removed + minus], [0, 0] as [number, number]);
}

/** Exit code, or the signal's name; null while there is none. */
export function exitOf({ structured, error }: ToolCall): number | string | null {
  if (structured?.type === "command_output") return structured.signal ?? structured.exitCode;
  const told = isObject(error?.details) ? error.details["exitCode"] : undefined;
  return typeof told === "number" ? told : null;
}

/** Somebody, or a rule, said no. */
export const isDeclined = (call: ToolCall): boolean => call.error?.code === "rejected";

/** It waits until somebody decides. */
export const isWaiting = (call: ToolCall): boolean => call.status === "pending" && Boolean(call.requiresApproval);
