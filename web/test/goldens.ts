/** The sessions in tests/golden/web: events, and what the hub folds from them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SessionEvent, SessionItem, Snapshot } from "../src/model/wire.gen";

interface Case {
  name: string;
  events: SessionEvent[];
  snapshot: Snapshot;
}

// as a path: where a test has a document, URL is the document's
const FOLDER = join(fileURLToPath(import.meta.url), "../../../tests/golden/web");

/** Read anew at every call: the fold owns the events it is given. */
export function goldens(): Case[] {
  return readdirSync(FOLDER).flatMap((file) => {
    const cases = JSON.parse(readFileSync(join(FOLDER, file), "utf8")) as {
      events: SessionEvent[];
      items: SessionItem[];
      rest: Omit<Snapshot, "items">;
    }[];
    return cases.map(({ events, items, rest }, index) => ({
      name: cases.length > 1 ? `${file} ${index}` : file,
      events,
      snapshot: { ...rest, items },
    }));
  });
}

export const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
