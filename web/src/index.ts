/** What the views are built on. */
export { diffTexts } from "./diff/texts";
export { languageOf } from "./diff/language";
export { parsePatch } from "./diff/patch";
export { side, unfold } from "./diff/rows";
export { browserPorts, wakeWith } from "./link/browser";
export { SessionFeed } from "./link/feed";
export { CommandFailed, Link } from "./link/link";
export { Session } from "./model/session";
export { describeToolCall } from "./model/tools";
export { AnsiScreen } from "./text/ansi/screen";
export { sanitiser } from "./text/markdown/sanitise";
export { MarkdownStream, markdown } from "./text/markdown/stream";
