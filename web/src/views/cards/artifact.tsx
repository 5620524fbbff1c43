/**
 * Something the session made: a look at it, and the file itself.
 *
 * Pages are shown by the hub's preview in a sandboxed frame, in which no script runs; everything else is text or a
 * picture of this origin. Nothing is fetched before somebody asks, except pictures.
 */
import { useContext, useEffect, useState } from "preact/hooks";
import { path } from "../../app/api";
import { HubContext } from "../../app/context";
import { languageOf } from "../../diff/language";
import { isObject, textOf } from "../../model/json";
import type { Artifact, Json } from "../../model/wire.gen";
import { Icon, type IconName } from "../../ui/icon";
import { Code } from "../code/code";
import { useFold } from "../text/fold";
import { Markdown } from "../text/markdown";
import { useSource, useVersion } from "../text/source";
import { table } from "./csv";

export interface Made {
  id: string;
  type: string;
  name: string;
  path: string;
}

export function madeOf(value: Json): Made | null {
  if (!isObject(value)) return null;
  const [id, place] = [textOf(value["id"]), textOf(value["path"])];
  if (!id || !place) return null;
  return { id, path: place, type: textOf(value["type"]) || "file", name: textOf(value["name"]) || nameOf(place) };
}

const nameOf = (place: string): string => place.split("/").at(-1) || place;

type Look = "image" | "page" | "markdown" | "table" | "text" | "none";

const LOOKS: readonly (readonly [RegExp, Look, IconName])[] = [
  [/\.(?:png|jpe?g|gif|webp|avif|bmp|ico)$/i, "image", "image"],
  [/\.(?:html?|svg)$/i, "page", "web"],
  [/\.(?:md|markdown)$/i, "markdown", "file"],
  [/\.(?:csv|tsv)$/i, "table", "list"],
  [/\.(?:txt|log)$/i, "text", "file"],
];

export function lookOf({ name, type }: Made): readonly [Look, IconName] {
  if (type === "nextjs_app") return ["none", "folder"];
  const found = LOOKS.find(([pattern]) => pattern.test(name));
  if (found) return [found[1], found[2]];
  return languageOf(name) ? ["text", "file"] : ["none", "file"];
}

/** A path as people say it. */
export const below = (within: string, place: string): string =>
  within && place.startsWith(`${within}/`) ? place.slice(within.length + 1) : place;

/** In the transcript, after the calls that made it. A text is there already, in the call that wrote it. */
export function ArtifactCard({ item }: { item: Artifact }) {
  useVersion(item);
  const made = madeOf(item.artifact);
  const look = made ? lookOf(made)[0] : "none";
  const { id = "", workingDirectory = "" } = useSource().session.value?.fields ?? {};
  const [open, toggle] = useFold(item, look === "image");
  if (!made || look === "text") return null;
  return (
    <MadeCard made={{ ...made, path: below(workingDirectory, made.path) }} session={id} open={open} toggle={toggle} />
  );
}

interface MadeProps {
  made: Made;
  session: string;
  open: boolean;
  toggle(): void;
}

export function MadeCard({ made, session, open: wanted, toggle }: MadeProps) {
  const isServed = useContext(HubContext) !== null; // an exported session has nobody to ask for files
  const [kind, icon] = lookOf(made);
  const look = isServed ? kind : "none";
  const open = wanted && look !== "none";
  const url = path("sessions", session, "artifacts", made.id);
  return (
    <article class={`artifact card${open ? " call-open" : ""}`}>
      <header class="artifact-head">
        <button type="button" class="call-head" aria-expanded={open} disabled={look === "none"} onClick={toggle}>
          <span class="call-icon">
            <Icon name={icon} size={15} />
          </span>
          <span class="call-line">
            <span class="call-verb">{made.name}</span> <span class="call-about mono">{made.path}</span>
          </span>
          {look !== "none" && (
            <span class="call-turn">
              <Icon name="right" size={12} />
            </span>
          )}
        </button>
        {isServed && made.type !== "nextjs_app" && (
          <a
            class="button quiet icon"
            href={url}
            download={made.name}
            aria-label={`Download ${made.name}`}
            title="Download"
          >
            <Icon name="download" size={15} />
          </a>
        )}
      </header>
      {open && <Preview look={look} made={made} url={`${url}/preview`} />}
    </article>
  );
}

export function Preview({ look, made, url }: { look: Look; made: Made; url: string }) {
  if (look === "image") return <img class="artifact-image" src={url} alt={made.name} loading="lazy" />;
  if (look === "page") return <iframe class="artifact-page" sandbox="" src={url} title={made.name} loading="lazy" />;
  return <TextPreview look={look} made={made} url={url} />;
}

/** Characters of a file that are shown. */
const LIMIT = 200_000;

function TextPreview({ look, made, url }: { look: Look; made: Made; url: string }) {
  const [text, setText] = useState<string | null>(null);
  const [failed, setFailed] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    read(url, stop.signal).then(setText, (error: unknown) => {
      if (!stop.signal.aborted) setFailed(error instanceof Error ? error.message : String(error));
    });
    return () => stop.abort();
  }, [url]);
  if (failed) return <p class="call-error">It cannot be shown: {failed}. Download it instead.</p>;
  if (text === null) return <p class="muted small artifact-text">Loading…</p>;
  return (
    <div class="artifact-text">
      {look === "markdown" ? (
        <Markdown text={text} />
      ) : look === "table" ? (
        <Table text={text} separator={made.name.toLowerCase().endsWith(".tsv") ? "\t" : ","} />
      ) : (
        <Code text={text} language={languageOf(made.name)} lineNumbers />
      )}
    </div>
  );
}

async function read(url: string, signal: AbortSignal): Promise<string> {
  const answer = await fetch(new URL(url, document.baseURI), { signal, credentials: "same-origin" });
  if (!answer.ok) throw new Error(answer.status === 404 ? "the file is not there" : `status ${answer.status}`);
  const text = await answer.text();
  if (text.includes("\0")) throw new Error("it is no text");
  return text.length > LIMIT ? `${text.slice(0, LIMIT)}\n…` : text;
}

function Table({ text, separator }: { text: string; separator: string }) {
  const [head = [], ...rows] = table(text, separator, 201);
  return (
    <div class="md">
      <div class="md-table" tabIndex={0} role="group" aria-label="Table">
        <table>
          <thead>
            <tr>
              {head.map((cell, at) => (
                <th key={at}>{cell}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((cells, at) => (
              <tr key={at}>
                {cells.map((cell, column) => (
                  <td key={column}>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
