/** The licences of the libraries that are in the bundle, which has none of their comments. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** `inputs` are the files that were bundled, relative to `root`. */
export async function licences(inputs, root) {
  const found = inputs.map((path) => /.*\bnode_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean);
  const texts = [];
  for (const name of [...new Set(found)].sort()) texts.push(await licence(name, join(root, "node_modules", name)));
  return `The page of Pilothouse contains these libraries.\n${texts.join("")}`;
}

async function licence(name, place) {
  const about = JSON.parse(await readFile(join(place, "package.json"), "utf8"));
  const file = (await readdir(place)).sort().find((one) => /^licen[cs]e/i.test(one));
  if (!file) throw new Error(`${name} has no licence file`);
  const text = (await readFile(join(place, file), "utf8")).replaceAll("\r\n", "\n").trim();
  const line = "=".repeat(80);
  return `\n${line}\n${name} ${about.version} (${about.license})\n${line}\n\n${text}\n`;
}
