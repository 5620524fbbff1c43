/**
 * Build the page into the Python package: `node build.mjs`. With `--check` nothing is written, and what is there must be
 * what would be written: the same sources give the same bytes.
 *
 * Prints what a browser loads, and fails when it is too much before something can be seen.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { bundle } from "./bundle.mjs";
import { exportHtml } from "./export.mjs";
import { licences } from "./licences.mjs";
import { indexHtml, manifest } from "./shell.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const PLACE = join(HERE, "../src/pilothouse/web");
/** Bytes, packed, that may be loaded before something can be seen. */
const FIRST_LOAD = 80 * 1024;
const ICONS = ["icon.svg", "icon-192.png", "icon-512.png", "maskable-512.png", "touch-192.png"];
/** What the service worker keeps beside the assets. */
const KEPT = ["icon.svg", "manifest.webmanifest"];

const files = new Map();
const { parts, first, inputs } = await bundle(HERE);
for (const [name, data] of parts) files.set(name, data);
files.set("licences.txt", Buffer.from(await licences(inputs, HERE)));
for (const name of ICONS) files.set(name, await readFile(join(HERE, "icons", name)));
files.set("manifest.webmanifest", Buffer.from(manifest()));
const version = digest([...files, ["index.html", indexHtml({ first, version: "" })]]);
files.set("index.html", Buffer.from(indexHtml({ first, version })));
files.set("sw.js", await worker(version));
files.set("export.html", Buffer.from(await exportHtml()));

const size = report();
if (process.argv.includes("--check")) await check();
else await write();
if (size > FIRST_LOAD) fail(`the first load is ${kilobytes(size)} KB; ${kilobytes(FIRST_LOAD)} KB are allowed`);

async function worker(version) {
  const shell = [...files.keys()].filter((name) => name.startsWith("assets/") || KEPT.includes(name)).sort();
  const { outputFiles } = await build({
    absWorkingDir: HERE,
    entryPoints: ["src/worker/sw.ts"],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    define: { SHELL: JSON.stringify(shell), VERSION: JSON.stringify(version) },
  });
  return Buffer.from(outputFiles[0].contents);
}

function digest(entries) {
  const hash = createHash("sha256");
  for (const [name, data] of entries.sort(([one], [other]) => (one < other ? -1 : 1)))
    hash.update(`${name}\0${data.length}\0`).update(data);
  return hash.digest("hex").slice(0, 16);
}

function report() {
  const needed = new Set(["index.html", first.style, ...first.scripts]);
  let total = 0;
  for (const [name, data] of [...files].sort()) {
    const packed = gzipSync(data, { level: 9 }).length;
    if (needed.has(name)) total += packed;
    console.log(`${needed.has(name) ? "*" : " "} ${kilobytes(packed).padStart(6)} KB  ${name}`);
  }
  console.log(`* ${kilobytes(total).padStart(6)} KB  first load, packed`);
  return total;
}

async function write() {
  for (const name of await present()) if (!files.has(name)) await rm(join(PLACE, name));
  for (const [name, data] of files) {
    await mkdir(dirname(join(PLACE, name)), { recursive: true });
    await writeFile(join(PLACE, name), data);
  }
}

async function check() {
  const there = await present();
  const wrong = there.filter((name) => !files.has(name));
  for (const [name, data] of files) {
    if (!there.includes(name) || !data.equals(await readFile(join(PLACE, name)))) wrong.push(name);
  }
  if (wrong.length) fail(`src/pilothouse/web is not what the sources give (${wrong.sort().join(", ")}); run: make web`);
}

async function present() {
  const found = await readdir(PLACE, { recursive: true, withFileTypes: true }).catch(() => []);
  return found.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name).slice(PLACE.length + 1));
}

function kilobytes(count) {
  return (count / 1024).toFixed(1);
}

function fail(reason) {
  console.error(reason);
  process.exitCode = 1;
}
