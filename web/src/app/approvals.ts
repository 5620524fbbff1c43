/**
 * Approval requests in words, for cards, lists and notifications.
 *
 * Commands, paths and descriptions come from agents and are returned as they are: show them with `Seen`, or pass them
 * through `visible`.
 */
import { isObject, type JsonObject } from "../model/json";
import { COMMAND_KEYS, DIRECTORY_MEMBERS, VARIABLE_MEMBERS } from "../model/tables.gen";
import { commandText, shellWords } from "../model/tools";
import type { ApprovalRequestedEvent, DiffPreview, Json } from "../model/wire.gen";
import { visible } from "../text/highlight/odd";
import { joinLines, shortenText } from "../text/shorten";

/** The parts of a request that say what it is about; a row of the hub's list and an item of a session both have them. */
export type Request = Pick<
  ApprovalRequestedEvent,
  "preview" | "description" | "toolName" | "questionIds" | "choosesMode"
>;

/** Whether the tool only asks its user: the approval is then the form for the answers. */
export const isQuestionRequest = ({ questionIds }: Pick<Request, "questionIds">): boolean =>
  Boolean(questionIds?.length);

const trimSlashes = (path: string): string => path.replace(/(?<=[^/])\/+$/, "");

/** A path relative to the session's directory, else whole: another user's home must not look like one's own. */
export function relativePath(path: string, cwd: string | undefined): string {
  const root = cwd?.replace(/\/+$/, "");
  return root && path.startsWith(`${root}/`) && !path.includes("/../") ? path.slice(root.length + 1) : path;
}

/** The directory of a command, unless it is the session's own. */
export function otherDirectory({ preview }: Request, cwd: string | undefined): string {
  if (preview?.type !== "command" || !preview.workingDir) return "";
  return cwd !== undefined && trimSlashes(preview.workingDir) === trimSlashes(cwd) ? "" : preview.workingDir;
}

/** The title of a request: `Run a command`, `Edit src/a.py`, or the agent's description. */
export function describeRequest(request: Request, cwd?: string): string {
  const { preview, description, toolName, questionIds = [] } = request;
  if (questionIds.length) {
    return questionIds.length === 1 ? "Question from the agent" : `${questionIds.length} questions from the agent`;
  }
  if (preview?.type === "command") {
    const isElsewhere = cwd !== undefined && otherDirectory(request, cwd) !== "";
    return isElsewhere ? "Run a command in another directory" : "Run a command";
  }
  if (preview?.type === "diff") return describeChange(preview.path, preview.diff, cwd);
  return description || toolName || "Continue";
}

function describeChange(path: string, diff: string, cwd: string | undefined): string {
  const files = filesOf(diff);
  if (files.length > 1) return `Change ${files.length} files`;
  const verb = files[0]?.before === NO_FILE ? "Create" : files[0]?.after === NO_FILE ? "Delete" : "Edit";
  return `${verb} ${path ? relativePath(path, cwd) : "a file"}`;
}

const NO_FILE = "/dev/null";
const HUNK = /^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@/;

/** The files of a diff by its headers. Lines of a hunk are counted: an added `++ x` is not the name of a file. */
function filesOf(diff: string): { before: string; after: string }[] {
  const files = [];
  const lines = diff.split("\n");
  let [before, after] = [0, 0];
  for (const [place, line] of lines.entries()) {
    const hunk = HUNK.exec(line);
    const next = lines[place + 1] ?? "";
    if (before > 0 || after > 0) {
      if (line.startsWith("\\")) continue;
      if (line[0] !== "+") before -= 1;
      if (line[0] !== "-") after -= 1;
    } else if (hunk) [before, after] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
    else if (line.startsWith("--- ") && next.startsWith("+++ ")) {
      files.push({ before: line.slice(4), after: next.slice(4) });
    }
  }
  return files;
}

/** A request in one line: the whole command with a mark for each line end, or the title. */
export function summarizeRequest(request: Request, cwd?: string): string {
  const { preview } = request;
  const isCommand = preview?.type === "command" && !isQuestionRequest(request);
  return joinLines(isCommand ? preview.command : describeRequest(request, cwd));
}

/** The same for places that show plain text only. Neither end is cut off. */
export const plainSummary = (request: Request, cwd: string | undefined, limit: number): string =>
  visible(shortenText(summarizeRequest(request, cwd), limit));

/** Whether the options are a choice between modes, as for a plan that is ready. */
export const isModeRequest = ({ choosesMode }: Pick<Request, "choosesMode">): boolean => choosesMode ?? false;

// -- arguments --------------------------------------------------------------------------------------------------------

/** The name of a member without case and separators, as in the tables of the model. */
const simplifyKey = (key: string): string => key.replace(/[\W_]+/g, "").toLowerCase();

/** Environment variables that a tool call sets, as `NAME=value`, in whichever shape its agent sends them. */
export function environmentOf(input: Json | undefined): string[] {
  if (!isObject(input)) return [];
  return Object.entries(input).flatMap(([key, value]) =>
    VARIABLE_MEMBERS.includes(simplifyKey(key)) ? variablesOf(value) : [],
  );
}

function variablesOf(value: Json | undefined): string[] {
  if (isObject(value)) return Object.entries(value).map(([name, one]) => printVariable(name, one));
  if (!Array.isArray(value)) return typeof value === "string" && value ? [value] : [];
  return value.map((one) =>
    isObject(one) && typeof one["name"] === "string" ? printVariable(one["name"], one["value"]) : printValue(one),
  );
}

/** One line for each variable: a line break is written as `\n`, so that no value looks like another variable. */
function printVariable(name: string, value: Json | undefined): string {
  const text = `${name}=${printValue(value)}`;
  return /[\n\r]/.test(text) ? JSON.stringify(text) : text;
}

const printValue = (value: Json | undefined): string =>
  typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);

/** Members from which the hub makes a diff, and remarks about it. */
const TEXTS =
  /^(?:contents?|filetext|(?:old|new)(?:string|str|text)|newsource|patch(?:text)?|diff|before|after|text|instruction)$/;
const EDITS = /^(?:edits|changes)$/;
/** Members of one edit besides its path and its texts. */
const EDIT_PARTS = /^(?:add|update|delete|type|unifieddiff|replaceall)$/;
const REMARKS = /^(?:description|explanation|reason|justification|title|summary)$/;
const PATHS = /(?:paths?|files?|filename|uri)$/;

const isNothing = (value: Json): boolean =>
  value === null || value === "" || (typeof value === "object" && !Object.keys(value).length);

/**
 * The arguments of a tool call that its preview does not show: all of them where neither a command nor a change is
 * shown, and for questions what is not part of them.
 */
export function otherArguments(request: ApprovalRequestedEvent, cwd?: string): JsonObject {
  const { preview, toolInput } = request;
  if (!isObject(toolInput)) return {};
  if (isQuestionRequest(request)) return argumentsOfQuestions(toolInput);
  if (preview?.type === "command") return selectMembers(toolInput, isBesideCommand(request, commandAlone(request)));
  if (preview?.type === "diff") return selectMembers(toolInput, isBesideDiff(preview, cwd));
  const text = preview?.text.trim();
  return selectMembers(toolInput, (_, value) => !text || printValue(value).trim() !== text);
}

const selectMembers = (input: JsonObject, isOther: (key: string, value: Json) => boolean): JsonObject =>
  Object.fromEntries(Object.entries(input).filter(([key, value]) => !isNothing(value) && isOther(key, value)));

function isBesideCommand({ preview, description, toolInput }: ApprovalRequestedEvent, command: string) {
  const directory = preview?.type === "command" ? preview.workingDir : "";
  const own = isObject(toolInput) ? commandText(toolInput) : null;
  // the hub writes the variables of a command in front of it
  const isWhole =
    own !== null && (own === command || (environmentOf(toolInput).length > 0 && command.endsWith(` ${own}`)));
  return (key: string, value: Json): boolean => {
    const name = simplifyKey(key);
    if (value === command || (key === "description" && value === description)) return false;
    if (isWhole && (COMMAND_KEYS.includes(key) || (/^(?:args|arguments)$/.test(key) && Array.isArray(value))))
      return false;
    if (VARIABLE_MEMBERS.includes(name)) return !variablesOf(value).length;
    return !(DIRECTORY_MEMBERS.includes(name) && value === directory);
  };
}

function isBesideDiff({ path, diff }: DiffPreview, cwd: string | undefined) {
  const files = filesOf(diff).flatMap(({ before, after }) =>
    [before, after].map((name) => name.replace(/^[ab]\//, "")),
  );
  const ends = files.filter((name) => path.endsWith(`/${name}`));
  const root = cwd?.replace(/\/+$/, "") ?? (ends[0] ? path.slice(0, -ends[0].length) : "");
  const resolve = (name: string): string => normalizePath(name.startsWith("/") ? name : `${root}/${name}`);
  const known = new Set([path, ...files].map(resolve));
  const isShown = (value: Json): boolean =>
    typeof value === "string" ? known.has(resolve(value.replace(/^file:\/\//, ""))) : isEdit(value);
  return (key: string, value: Json): boolean => {
    const name = simplifyKey(key);
    if (value === false) return false;
    if (REMARKS.test(name)) return !isProse(value);
    if (PATHS.test(name) || EDITS.test(name)) return !itemsOf(value).every(isShown);
    return name === "replaceall" ? value !== true : !TEXTS.test(name) || typeof value !== "string";
  };
}

/** The files or edits that a member lists; some agents key them by path. */
const itemsOf = (value: Json): Json[] =>
  isObject(value) ? Object.entries(value).flatMap(([key, one]) => [key, one]) : Array.isArray(value) ? value : [value];

/** Whether a value has only the texts of an edit, from which the hub makes the diff. */
function isEdit(value: Json): boolean {
  if (!isObject(value)) return !Array.isArray(value);
  const names = [TEXTS, EDITS, EDIT_PARTS, REMARKS, PATHS];
  return Object.entries(value).every(([key, one]) => names.some((some) => some.test(simplifyKey(key))) && isEdit(one));
}

/** Whether a remark is a text, and no JSON that may hold more. */
function isProse(value: Json): boolean {
  if (typeof value !== "string") return false;
  try {
    return typeof JSON.parse(value) !== "object";
  } catch {
    return true;
  }
}

function normalizePath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

const OF_QUESTION = /^(?:header|multiselect|multiple|id|type)$/;
const OF_OPTION = /^(?:label|value|text|name|id|description)$/;

function argumentsOfQuestions(input: JsonObject): JsonObject {
  const { questions, ...others } = input;
  if (!Array.isArray(questions)) return argumentsOfQuestion(input);
  const odd = questions.map((one) => (isObject(one) ? argumentsOfQuestion(one) : {}));
  const found = odd.filter((one) => !isNothing(one));
  return { ...(found.length && { questions: found }), ...selectMembers(others, () => true) };
}

function argumentsOfQuestion(question: JsonObject): JsonObject {
  const text = ["question", "text", "prompt"].find((key) => typeof question[key] === "string" && question[key]);
  const odd = selectMembers(question, (key, value) => {
    return key !== text && value !== false && !OF_QUESTION.test(simplifyKey(key));
  });
  for (const key of ["options", "choices", "follow_up"]) {
    const options = odd[key];
    if (!Array.isArray(options)) continue;
    const rests = options.map((one) =>
      isObject(one) ? selectMembers(one, (name) => !OF_OPTION.test(simplifyKey(name))) : {},
    );
    odd[key] = rests.filter((rest) => !isNothing(rest));
  }
  return selectMembers(odd, () => true);
}

/**
 * A command of a preview without the lines below it that repeat members of the input as `name: text`. They are shown
 * as arguments.
 */
export function commandAlone({ preview, toolInput }: ApprovalRequestedEvent): string {
  if (preview?.type !== "command" || !isObject(toolInput)) return "";
  const own = commandText(toolInput);
  const texts = [...listedTexts(toolInput)].filter(([name, text]) => {
    return !COMMAND_KEYS.includes(name) && !own?.includes(text.trim());
  });
  const lines = new Set(texts.slice(0, 200).map(([name, text]) => `${name}: ${text}`));
  let rest = preview.command;
  for (let line = found(); line !== undefined; line = found()) {
    lines.delete(line); // the hub lists it once; a second one is part of the command
    rest = rest.slice(0, -line.length).replace(/\n$/, "");
  }
  return rest || own === null ? rest : preview.command;

  function found(): string | undefined {
    return [...lines].find((line) => line === rest || rest.endsWith(`\n${line}`));
  }
}

/** The texts of an input as the hub lists them below a command: each with its member, and a member's texts in a row. */
function* listedTexts(input: JsonObject): Generator<[name: string, text: string]> {
  for (const [key, value] of Object.entries(input)) {
    const texts = textsOf(value, key);
    yield* texts;
    if (texts.length > 1) yield [key, texts.map(([, text]) => text).join(" ")];
  }
}

function textsOf(value: Json, name: string): [name: string, text: string][] {
  if (Array.isArray(value)) {
    const isFlat = value.every((one) => typeof one !== "object");
    return isFlat ? textsOf(shellWords(value), name) : value.flatMap((one) => textsOf(one, name));
  }
  if (isObject(value)) return Object.entries(value).flatMap(([key, one]) => textsOf(one, key));
  return isNothing(value) ? [] : [[name, String(value)]];
}

/** An argument as text; a text that looks like a number or a word of JSON keeps its quotes. */
export function printArgument(value: Json): string {
  if (typeof value === "string" && !/^(?:-?\d[\d.eE+-]*|true|false|null|)$/.test(value)) return value;
  const line = JSON.stringify(value);
  return line.length <= 80 ? line : JSON.stringify(value, null, 2);
}
