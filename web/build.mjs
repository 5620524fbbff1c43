/** Bundle the page into `dist/`: `node build.mjs`. Prints what a browser has to load. */
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const outdir = new URL("./dist/", import.meta.url).pathname;
const { metafile } = await build({
  entryPoints: [new URL("./src/index.ts", import.meta.url).pathname],
  outdir,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "linked",
  metafile: true,
  absWorkingDir: new URL(".", import.meta.url).pathname,
});
for (const path of Object.keys(metafile.outputs).filter((name) => name.endsWith(".js"))) {
  const code = await readFile(new URL(path, import.meta.url));
  console.log(`${path}  ${kilobytes(code)} KB, ${kilobytes(gzipSync(code, { level: 9 }))} KB gzip`);
}

function kilobytes(data) {
  return (data.length / 1024).toFixed(1);
}
