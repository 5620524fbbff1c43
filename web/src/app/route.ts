/** Where the page is. It lives behind the `#`, so the hub may be served below any path and a reload stays in place. */
import { computed, signal } from "@preact/signals";

export type Route =
  | { view: "sessions" }
  | { view: "session"; id: string }
  | { view: "replay"; id: string }
  | { view: "new" }
  | { view: "approvals" }
  | { view: "devices" }
  | { view: "pair"; ticket: string };

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#/, "");
  if (text.startsWith("pair=")) return { view: "pair", ticket: decode(text.slice("pair=".length)) };
  const [view = "", id = ""] = text.replace(/^\//, "").split("/").map(decode);
  if ((view === "session" || view === "replay") && id) return { view, id };
  return view === "new" || view === "approvals" || view === "devices" ? { view } : { view: "sessions" };
}

/** The address of a place, for links: a middle click opens it in another tab. */
export function hrefOf(route: Route): string {
  if (route.view === "pair") return `#pair=${encodeURIComponent(route.ticket)}`;
  if ("id" in route) return `#/${route.view}/${encodeURIComponent(route.id)}`;
  return route.view === "sessions" ? "#/" : `#/${route.view}`;
}

// an address is anybody's to write
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const hash = signal(typeof location === "undefined" ? "" : location.hash);
if (typeof window !== "undefined") window.addEventListener("hashchange", () => (hash.value = location.hash));

export const route = computed(() => parseRoute(hash.value));

export function go(to: Route): void {
  location.hash = hrefOf(to);
}
