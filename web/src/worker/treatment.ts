/**
 * What the service worker does with a request. It has the page itself and its files, and nothing else: whatever the hub
 * tells is not its business, so an answer can never be older than it looks.
 */

export type Treatment = "page" | "file" | "leave";

export interface Asked {
  method: string;
  url: string;
  /** As browsers have it: `navigate` for what the address bar names. */
  mode: string;
}

/** `scope` is the address that the page is served at, `files` what is kept of it, by paths relative to that. */
export function treatmentOf({ method, url, mode }: Asked, scope: string, files: ReadonlySet<string>): Treatment {
  if (method !== "GET") return "leave";
  const bare = url.replace(/#.*$/s, "");
  if (!bare.startsWith(scope)) return "leave";
  const path = bare.slice(scope.length);
  if (mode === "navigate") return path === "" ? "page" : "leave";
  return files.has(path) ? "file" : "leave";
}

/** Where the page shows a session. */
export const addressOf = (scope: string, sessionId: string): string =>
  new URL(`#/session/${encodeURIComponent(sessionId)}`, scope).href;

/** Caches belong to an origin, which may have hubs below several paths, so a name has the path in it. */
export const cacheName = (scope: string, version: string): string => `${familyOf(scope)}${version}`;

/** Whether a cache is one of an earlier version here. */
export const isOutdated = (name: string, scope: string, version: string): boolean =>
  name.startsWith(familyOf(scope)) && name !== cacheName(scope, version);

const familyOf = (scope: string): string => `pilothouse-shell ${new URL(scope).pathname} `;
