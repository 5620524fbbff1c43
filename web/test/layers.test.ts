/** Imports flow one way, so that what is pure stays pure and a view can be changed without a look at the link. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

const SOURCE = join(import.meta.dirname, "../src");

/** What each layer may import besides itself. */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  model: [],
  text: [],
  diff: [],
  worker: [],
  link: ["model"],
  app: ["link", "model", "text", "diff"],
  ui: ["app", "model", "text", "diff"],
  views: ["ui", "app", "link", "model", "text", "diff"],
};
/** Layers that draw, or tell those that do. */
const DRAWING: ReadonlySet<string> = new Set(["app", "ui", "views"]);

const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((path) => /\.tsx?$/.test(path));
const layerOf = (path: string): string => (path.includes("/") ? path.slice(0, path.indexOf("/")) : "");
const layered = files.filter((path) => layerOf(path));

/** What a file imports, as types too, and at once or later. */
function importsOf(path: string): string[] {
  const text = readFileSync(join(SOURCE, path), "utf8");
  return [...text.matchAll(/\b(?:from|import)[ (]*"([^"\n]+)"/g)].map(([, name = ""]) =>
    name.startsWith(".") ? normalize(join(dirname(path), name)) : `package ${name}`,
  );
}

test("every file is of a layer, or begins a page", () => {
  expect(files.filter((path) => !layerOf(path)).sort()).toEqual(["export.tsx", "main.tsx"]);
  expect([...new Set(layered.map(layerOf))].sort()).toEqual(Object.keys(BELOW).sort());
});

test("no layer imports one above it", () => {
  const wrong = layered.flatMap((path) =>
    importsOf(path)
      .filter((name) => !name.startsWith("package "))
      .filter((name) => ![layerOf(path), ...(BELOW[layerOf(path)] ?? [])].includes(layerOf(name)))
      .map((name) => `${path} imports ${name}`),
  );
  expect(wrong).toEqual([]);
  expect(importsOf("views/diff/lazy.tsx")).toContain("views/diff/views");
});

test("what does not draw knows nothing of drawing", () => {
  const drawn = layered.filter((path) => importsOf(path).some((name) => /^package (?:@preact\/|preact\b)/.test(name)));
  expect(drawn.filter((path) => !DRAWING.has(layerOf(path)))).toEqual([]);
  expect(drawn).toContain("app/hub.ts");
  expect(files.filter((path) => path.endsWith(".tsx") && ["app", "link"].includes(layerOf(path)))).toEqual([]);
});

test("every file is wanted by another one", () => {
  const wanted = new Set(files.flatMap(importsOf));
  const begins = ["main", "export", "worker/sw"];
  const names = files.map((path) => path.replace(/\.tsx?$/, ""));
  expect(names.filter((name) => !wanted.has(name) && !begins.includes(name))).toEqual([]);
});
