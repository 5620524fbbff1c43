/**
 * The page's code and styles. esbuild puts modules together; what it would leave in dozens of small files, since each may
 * be wanted by several parts of the page, rollup joins: a browser asks for few files, and what is needed at once is one.
 */
import { build, transform } from "esbuild";
import { rollup } from "rollup";

const ENTRY = "src/main.tsx";
const STYLE = "src/styles/index.css";
const TARGET = "es2022";
/** Characters below which a file is joined with another one, where no more is loaded by that than needed. */
const SMALL = 8000;

/** `parts` by name; `first`: what is needed at once, the script that begins first; `inputs`: the sources of all. */
export async function bundle(root) {
  const options = {
    absWorkingDir: root,
    outdir: root,
    bundle: true,
    write: false,
    metafile: true,
    target: TARGET,
    preserveSymlinks: true, // where a linked node_modules stands must not get into the page
  };
  const scripts = await build({
    ...options,
    entryPoints: { main: ENTRY },
    entryNames: "[name]",
    chunkNames: "[name]-[hash]",
    format: "esm",
    splitting: true,
    minifySyntax: true,
    legalComments: "none", // the full texts are in licences.txt
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const styles = await build({
    ...options,
    entryPoints: { index: STYLE },
    entryNames: "assets/[name]-[hash]",
    minify: true,
  });
  const chunks = await joined(new Map(scripts.outputFiles.map(({ path, text }) => [path, text])), `${root}/main.js`);
  const [style] = styles.outputFiles.map(({ path, contents }) => [path.slice(root.length + 1), Buffer.from(contents)]);
  return {
    parts: [...chunks.map(({ fileName, code }) => [fileName, Buffer.from(code)]), style],
    first: { scripts: atOnce(chunks), style: style[0] },
    inputs: Object.keys(scripts.metafile.inputs),
  };
}

async function joined(pieces, entry) {
  const made = await rollup({
    input: { main: entry },
    plugins: [reading(pieces), minifying],
    onLog: (level, { message }) => {
      if (level === "warn") throw new Error(message);
    },
  });
  let needed = null;
  const { output } = await made.generate({
    format: "es",
    entryFileNames: "assets/[name]-[hash].js",
    chunkFileNames: ({ name }) => `assets/${name.replace(/-[A-Z0-9]{8}$/, "")}-[hash].js`,
    hashCharacters: "base36",
    experimentalMinChunkSize: SMALL,
    manualChunks: (id, { getModuleInfo }) => {
      needed ??= closure(entry, (one) => getModuleInfo(one).importedIds);
      return needed.has(id) ? "main" : undefined;
    },
  });
  await made.close();
  return output;
}

const reading = (pieces) => ({
  name: "reading",
  resolveId: (source, from) => (from ? new URL(source, `file://${from}`).pathname : source),
  load: (id) => pieces.get(id),
});

/** Before names are made of the content. */
const minifying = {
  name: "minifying",
  renderChunk: async (code) =>
    (await transform(code, { minify: true, format: "esm", target: TARGET, legalComments: "none" })).code,
};

function atOnce(chunks) {
  const imports = new Map(chunks.map((chunk) => [chunk.fileName, chunk.imports]));
  return [...closure(chunks.find((chunk) => chunk.isEntry).fileName, (name) => imports.get(name))];
}

function closure(start, next) {
  const found = new Set([start]);
  for (const one of found) for (const other of next(one)) found.add(other);
  return found;
}
