/**
 * What the page asks of a session, and the content of prompts: as it is typed, as it is sent, as it comes back.
 *
 * A file that is mentioned goes as a link in its place among the text, which every agent has to understand; a picture
 * goes with its bytes.
 */
import { isObject, type JsonObject, textOf } from "../model/json";
import type { Json, MessageContent } from "../model/wire.gen";
import type { Hub } from "./hub";

/** A block as ACP has it. */
export type Block = JsonObject;
export type Prompt = string | Block[];

/** A picture on its way into a prompt. */
export interface Picture {
  id: string;
  name: string;
  mimeType: string;
  /** In base64. */
  data: string;
}

export const pictureUrl = (picture: Picture): string => `data:${picture.mimeType};base64,${picture.data}`;

/** What was typed as a prompt. Mentions are paths below `cwd` that stand in the text with an `@` before them. */
export function promptOf(
  typed: string,
  mentions: readonly string[],
  pictures: readonly Picture[],
  cwd: string,
): Prompt {
  const text = typed.trim();
  const pieces = split(text, mentions);
  if (!pictures.length && pieces.every((piece) => typeof piece === "string")) return text;
  const blocks = pieces.map((piece): Block => {
    if (typeof piece === "string") return { type: "text", text: piece };
    return { type: "resource_link", uri: fileUri(cwd, piece.path), name: piece.path };
  });
  const images = pictures.map(({ data, mimeType }): Block => ({ type: "image", data, mimeType }));
  return [...blocks, ...images];
}

type Piece = string | { path: string };

/** The text, cut where files are mentioned. A longer path wins over one that it begins with. */
function split(text: string, mentions: readonly string[]): Piece[] {
  const [path, ...others] = [...new Set(mentions)].sort((one, other) => other.length - one.length);
  if (path === undefined) return text ? [text] : [];
  return text.split(`@${path}`).flatMap((part, index) => [...(index ? [{ path }] : []), ...split(part, others)]);
}

export const fileUri = (cwd: string, path: string): string =>
  `file://${`${cwd.replace(/\/+$/, "")}/${path}`.split("/").map(encodeURIComponent).join("/")}`;

/** What a prompt says, in the words it was typed in; pictures and sounds are not words. */
export function wordsOf(content: readonly (MessageContent | Json)[]): string {
  return content
    .map((block) => {
      if (!isObject(block)) return "";
      if (block["type"] === "text") return textOf(block["text"]);
      return block["type"] === "resource" ? `@${textOf(block["name"]) || textOf(block["uri"])}` : "";
    })
    .join("");
}

/** Files that a prompt links to, by the names that stand in `wordsOf`. */
export const mentionsIn = (content: readonly Json[]): string[] =>
  content
    .filter(isObject)
    .flatMap((block) => (block["type"] === "resource" ? [textOf(block["name"])] : []))
    .filter(Boolean);

/** Pictures of a prompt that comes back, as they were attached. */
export function picturesIn(content: readonly Json[]): Picture[] {
  return content.filter(isObject).flatMap((block, index) => {
    const [, mimeType = "", data = ""] = /^data:([^;,]+);base64,(.*)$/s.exec(textOf(block["url"])) ?? [];
    return block["type"] === "image" && data ? [{ id: `back-${index}`, name: "Image", mimeType, data }] : [];
  });
}

// -- commands ---------------------------------------------------------------------------------------------------------

export const sendMessage = (hub: Hub, id: string, message: Prompt, clientRequestId: string): Promise<Json> =>
  hub.command(id, { command: "send_message", message, clientRequestId });

export const editQueued = (hub: Hub, id: string, promptId: string, message: Prompt): Promise<Json> =>
  hub.command(id, { command: "edit_queued", promptId, message });

export const cancelQueued = (hub: Hub, id: string, promptId: string): Promise<Json> =>
  hub.command(id, { command: "cancel_queued", promptId });

export const moveQueued = (hub: Hub, id: string, promptId: string, position: number): Promise<Json> =>
  hub.command(id, { command: "move_queued", promptId, position });

/** A text or several, the values of a form, or null to decline. */
export type Answer = string | string[] | JsonObject | null;

export const answerQuestion = (hub: Hub, id: string, questionId: string, answer: Answer): Promise<Json> =>
  hub.command(id, { command: "answer_question", questionId, answer });

export const resume = (hub: Hub, id: string): Promise<Json> => hub.command(id, { command: "resume" });

/** It ends the turn that runs when it comes, so it may not come late. */
export const cancel = (hub: Hub, id: string, force = false): Promise<Json> =>
  hub.commandNow(id, force ? { command: "cancel", force } : { command: "cancel" });
