/**
 * What changed between two readings of the list of sessions, as the hub would have told it by a WebSocket.
 *
 * A page has those that were active last. So one that is missing is gone only if it would have to be there: because the
 * page is the whole list, or because others that it has were active before it.
 */
import { isObject, type JsonObject, textOf } from "../model/json";
import type { Json } from "../model/wire.gen";
import type { News } from "./lane";

export class Listing {
  readonly #known = new Map<string, { row: JsonObject; text: string }>();

  /** The first reading, or one that shall count as such. */
  begin(page: Json): News {
    this.#known.clear();
    for (const row of rowsOf(page)) this.#know(row);
    return { type: "sessions_list", sessions: [], ...(isObject(page) ? page : {}) };
  }

  take(page: Json): News[] {
    const rows = rowsOf(page);
    const news: News[] = this.#missing(rows, isObject(page) && typeof page["next"] === "string").map((sessionId) => ({
      type: "session_deleted",
      sessionId,
    }));
    for (const row of rows) if (this.#know(row)) news.push({ type: "session_changed", session: row });
    return news;
  }

  /** Whether it is another row than before. */
  #know(row: JsonObject): boolean {
    const [id, text] = [textOf(row["id"]), JSON.stringify(row)];
    if (this.#known.get(id)?.text === text) return false;
    this.#known.set(id, { row, text });
    return true;
  }

  #missing(rows: JsonObject[], more: boolean): string[] {
    const there = new Set(rows.map((row) => textOf(row["id"])));
    const oldest = more ? textOf(rows.at(-1)?.["updated"]) : "";
    const missing = [...this.#known]
      .filter(([id, { row }]) => !there.has(id) && textOf(row["updated"]) > oldest)
      .map(([id]) => id);
    for (const id of missing) this.#known.delete(id);
    return missing;
  }
}

const rowsOf = (page: Json): JsonObject[] =>
  isObject(page) && Array.isArray(page["sessions"]) ? page["sessions"].filter(isObject) : [];
