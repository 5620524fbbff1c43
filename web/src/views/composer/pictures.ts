/** Files that are pasted, dropped or chosen: pictures go into the prompt, others into the session's directory. */
import type { Picture } from "../../app/commands";
import { path } from "../../app/api";
import { isObject, textOf } from "../../model/json";
import { bytes } from "../../ui/time";

const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** Bytes above which a picture is made smaller. */
const LARGE = 4 << 20;
/** The longest side of one that is made smaller. */
const SIDE = 2048;
/** Bytes in base64 that one prompt can carry: the hub takes messages of 8 MB. */
export const ROOM = 7 << 20;
/** Bytes of a file that is put into the session's directory. */
const UPLOAD = 64 << 20;

export const isPicture = (file: File): boolean => TYPES.includes(file.type);

/** Rejects with words that can be shown. */
export async function readPicture(file: File, id: string): Promise<Picture> {
  const blob = file.size > LARGE ? await smaller(file) : file;
  const url = await asUrl(blob);
  return { id, name: file.name || "Image", mimeType: blob.type, data: url.slice(url.indexOf(",") + 1) };
}

async function smaller(file: File): Promise<Blob> {
  const failed = `${file.name} is too large (${bytes(file.size)}) and cannot be made smaller here`;
  const image = await createImageBitmap(file).catch(() => {
    throw new Error(failed);
  });
  const scale = Math.min(1, SIDE / Math.max(image.width, image.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(image.width * scale);
  canvas.height = Math.round(image.height * scale);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  image.close();
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/jpeg", 0.85));
  if (!blob || blob.size > LARGE) throw new Error(failed);
  return blob;
}

function asUrl(blob: Blob): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => failed(new Error("The picture cannot be read"));
    reader.readAsDataURL(blob);
  });
}

/** Put a file below `uploads/` of the session's directory, beside any of the same name; gives its path. */
export async function upload(sessionId: string, file: File): Promise<string> {
  if (file.size > UPLOAD) throw new Error(`${file.name} is too large: ${bytes(UPLOAD)} at most`);
  // a directory falls as a file that nobody can read
  await file
    .slice(0, 1)
    .arrayBuffer()
    .catch(() => {
      throw new Error(`${file.name} cannot be read; a directory has to be dropped file by file`);
    });
  const name = file.name.replace(/[/\\\s@]+/g, "-").replace(/^\.+/, "") || "file";
  const dot = name.lastIndexOf(".");
  const [stem, end] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  for (let copy = 1; copy < 20; copy += 1) {
    const wanted = `uploads/${copy === 1 ? name : `${stem}-${copy}${end}`}`;
    const answer = await put(`${path("sessions", sessionId, "files")}/${path(...wanted.split("/"))}`, file);
    if (answer.status < 300) return wanted;
    if (answer.status !== 409) throw new Error(await refusal(answer));
  }
  throw new Error(`There are too many files named ${name}`);
}

/** By hand, because the bytes are no JSON. */
const put = (where: string, file: File): Promise<Response> =>
  fetch(new URL(where, document.baseURI), {
    method: "PUT",
    body: file,
    headers: { "Content-Type": "application/octet-stream" },
    credentials: "same-origin",
  }).catch(() => {
    throw new Error("The hub cannot be reached");
  });

async function refusal(answer: Response): Promise<string> {
  const body: unknown = await answer.json().catch(() => null);
  const error = isObject(body) ? body["error"] : null;
  return (isObject(error) && textOf(error["message"])) || `The hub answered with status ${answer.status}`;
}
