import { expect, test } from "vitest";
import { Listing } from "../../src/link/listing";

const row = (id: string, updated: string, status = "idle") => ({ id, updated, status });

function listed(...rows: ReturnType<typeof row>[]): Listing {
  const listing = new Listing();
  listing.begin({ sessions: rows, next: null });
  return listing;
}

test("the first reading is the list", () => {
  const page = { sessions: [row("a", "3")], next: "more" };
  expect(new Listing().begin(page)).toEqual({ type: "sessions_list", ...page });
  expect(new Listing().begin(null)).toEqual({ type: "sessions_list", sessions: [] });
});

test("then only rows that are new or others", () => {
  const listing = listed(row("a", "3"), row("b", "2"));
  expect(listing.take({ sessions: [row("a", "3"), row("b", "2")], next: null })).toEqual([]);
  const changed = row("b", "4", "running");
  expect(listing.take({ sessions: [changed, row("a", "3")], next: null })).toEqual([
    { type: "session_changed", session: changed },
  ]);
  expect(listing.take({ sessions: [changed, row("a", "3")], next: null })).toEqual([]);
});

test("one that is missing from the whole list is gone, and told once", () => {
  const listing = listed(row("a", "3"), row("b", "2"));
  expect(listing.take({ sessions: [row("a", "3")], next: null })).toEqual([
    { type: "session_deleted", sessionId: "b" },
  ]);
  expect(listing.take({ sessions: [row("a", "3")], next: null })).toEqual([]);
  expect(listing.take({ sessions: [], next: null })).toEqual([{ type: "session_deleted", sessionId: "a" }]);
});

test("one that may be on a further page is not gone", () => {
  const listing = listed(row("a", "3"), row("b", "2"), row("c", "5"));
  expect(listing.take({ sessions: [row("d", "6"), row("a", "3")], next: "more" })).toEqual([
    { type: "session_deleted", sessionId: "c" },
    { type: "session_changed", session: row("d", "6") },
  ]);
});
