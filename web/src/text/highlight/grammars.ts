/**
 * The grammars, in a chunk of their own: nobody loads them but `queue.ts`, when there is code on the screen.
 *
 * highlight.js reports scopes to an emitter of ours, which keeps lengths and colours; its HTML is never made.
 */
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lua from "highlight.js/lib/languages/lua";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { type Line, LineWriter, type Scope } from "./spans";

const GRAMMARS = {
  ...{ bash, c, cpp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, lua, markdown, php, python },
  ...{ ruby, rust, sql, swift, typescript, xml, yaml },
};
for (const [name, grammar] of Object.entries(GRAMMARS)) hljs.registerLanguage(name, grammar);

/** Names that people write and highlight.js does not know. */
const ALIASES: Readonly<Record<string, string[]>> = {
  bash: ["shell", "console", "shellsession", "shell-session"],
  javascript: ["node"],
  json: ["jsonl", "ndjson"],
  python: ["pyi", "python3"],
  xml: ["vue", "svelte"],
};
for (const [languageName, names] of Object.entries(ALIASES)) hljs.registerAliases(names, { languageName });

/** Whose colour a scope has. A scope that is not here has that of its first word, or of what is around it. */
const SCOPES: Readonly<Record<string, Scope>> = {
  ...only("comment", "comment quote meta doctag"),
  ...only("keyword", "keyword selector-tag operator meta-keyword"),
  ...only("string", "string regexp char link code"),
  ...only("number", "number literal symbol bullet template-variable"),
  ...only("name", "title section attr attribute property selector-id selector-class selector-attr selector-pseudo"),
  ...only("type", "type built_in name tag.name title.class class"),
  ...only("added", "addition"),
  ...only("removed", "deletion"),
  ...only("strong", "strong"),
  ...only("em", "emphasis"),
  ...only("", "subst params variable punctuation"),
};

function only(scope: Scope, names: string): Record<string, Scope> {
  return Object.fromEntries(names.split(" ").map((name) => [name, scope]));
}

class Emitter {
  readonly tokens: [text: string, scope: Scope][] = [];
  readonly #around: Scope[] = [];

  addText(text: string): void {
    if (text) this.tokens.push([text, this.#around.at(-1) ?? ""]);
  }

  openNode(name: string): void {
    const words = name.split(".");
    while (words.length && !Object.hasOwn(SCOPES, words.join("."))) words.pop();
    this.#around.push(SCOPES[words.join(".")] ?? this.#around.at(-1) ?? "");
  }

  closeNode(): void {
    this.#around.pop();
  }

  startScope(name: string): void {
    this.openNode(name);
  }

  endScope(): void {
    this.closeNode();
  }

  __addSublanguage(other: unknown): void {
    for (const token of (other as Emitter).tokens) this.tokens.push(token);
  }

  finalize(): void {}

  toHTML(): string {
    return "";
  }
}

hljs.configure({ __emitter: Emitter });

/** Characters that are read at once, about; the page can do something else in between. */
const SLICE = 12_000;

/**
 * The colours of each line, slice by slice: who asks takes the next when there is time. The last has all lines; null
 * when nobody knows the language.
 *
 * A slice ends with a line. If that is in the midst of something, such as a comment, it is read again, twice as long.
 */
export function* slices(text: string, language: string): Generator<undefined, readonly Line[] | null> {
  if (!hljs.getLanguage(language)) return null;
  const writer = new LineWriter();
  let size = SLICE;
  for (let from = 0; from < text.length;) {
    const end = text.indexOf("\n", from + size) + 1 || text.length;
    const result = hljs.highlight(text.slice(from, end), { language, ignoreIllegals: true });
    if (result.errorRaised) return null;
    if (end === text.length || !isWithin(result._top)) {
      for (const [piece, scope] of (result._emitter as unknown as Emitter).tokens) writer.write(piece, scope);
      from = end;
      size = SLICE;
    } else size *= 2;
    if (from < text.length) yield undefined;
  }
  return writer.lines;
}

/** Whether a mode of the grammar is one within another. */
const isWithin = (mode: object | undefined): boolean => !!mode && "parent" in mode && !!mode.parent;
