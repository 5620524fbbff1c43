/**
 * The page of an exported session, as a template: `node export.mjs FILE` writes it, the build puts it into the package.
 *
 * `pilothouse export` puts in what is between `{{` and `}}`. The one script and the styles are allowed by their
 * hashes, so the file must be written as it was made, byte for byte.
 */
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { licences } from "./licences.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const MARKERS = ["plain-style-hash", "title", "plain-style", "plain", "recording"];

export async function exportHtml() {
  const style = (await bundled("src/styles/index.css")).text;
  const { text, inputs } = await bundled("src/export.tsx");
  const script = inScript(text);
  if (/<\/style/i.test(style)) throw new Error("the styles would end their element");
  const policy = [
    "default-src 'none'",
    `script-src '${hash(script)}'`,
    `style-src '${hash(style)}' '{{plain-style-hash}}'`,
    "img-src data: blob:",
    "media-src data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ];
  const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta http-equiv="Content-Security-Policy" content="${policy.join("; ")}">
<meta name="referrer" content="no-referrer">
<title>{{title}}</title>
<style id="plain-style">{{plain-style}}</style>
<style id="app-style" media="not all">${style}</style>
</head>
<body>
<main id="plain">
{{plain}}
</main>
<script type="application/json" id="recording">{{recording}}</script>
<script>${script}</script>
</body>
</html>
<!--
${inComment(await licences(inputs, HERE))}
-->
`;
  for (const name of MARKERS) {
    if (page.split(`{{${name}}}`).length !== 2) throw new Error(`{{${name}}} is not in the page exactly once`);
  }
  return page;
}

async function bundled(entry) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: HERE,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    legalComments: "none", // the full texts are at the end of the page
    define: { "process.env.NODE_ENV": '"production"' },
    metafile: true,
  });
  return { text: outputFiles[0].text.trim(), inputs: Object.keys(metafile.inputs) };
}

/** In an element, a comment and the name of the element end it or keep it from ending; in texts an escape is the same. */
const inScript = (code) => code.replace(/<(?=!--|\/?script)/gi, "\\x3c");

const hash = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

const inComment = (text) => text.trim().replace(/--+/g, "==");

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeFile(process.argv[2], await exportHtml());
