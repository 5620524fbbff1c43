/**
 * A fence of code that is still open: a long one grows line by line and is never read twice.
 *
 * Only fences without indentation; others are left to the parser.
 */
import { type Code, language } from "./slices";

const OPENING = /^(`{3,}(?=[^`\n]*\n)|~{3,})([^\n]*)\n/;

export class OpenFence {
  readonly lang: string;
  readonly #close: RegExp;
  /** Whole lines of code. */
  #lines = "";
  /** The line that is being written. */
  #line = "";
  #source: string;

  /** The fence that the text begins with, if it does, and what follows its first line. */
  static begin(text: string): OpenFence | null {
    const found = OPENING.exec(text);
    return found && new OpenFence(found[0], found[1]!, found[2]!);
  }

  private constructor(opening: string, fence: string, info: string) {
    this.#source = opening;
    this.#close = new RegExp(`^ {0,3}${fence}${fence[0]}* *$`);
    this.lang = language(info.trim().replace(/\\([\p{P}\p{S}])/gu, "$1"));
  }

  /** The opening line and all that was taken in. */
  get source(): string {
    return this.#source;
  }

  /** The code so far. A last line that would close the fence if nothing follows is not part of it. */
  get code(): Code {
    const whole = this.#close.test(this.#line) ? this.#lines : this.#lines + this.#line;
    return { lang: this.lang, text: whole.replace(/\n$/, "") };
  }

  /** Take in more text; gives what follows the closing line, or null while the fence is open. */
  append(text: string): string | null {
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      const line = this.#line + text.slice(from, end);
      from = end + 1;
      if (this.#close.test(line)) {
        this.#source += text.slice(0, from);
        this.#line = line;
        return text.slice(from);
      }
      this.#lines += `${line}\n`;
      this.#line = "";
    }
    this.#source += text;
    this.#line += text.slice(from);
    return null;
  }
}
