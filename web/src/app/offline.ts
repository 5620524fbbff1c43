/**
 * The page without the hub: its files by a service worker, and what the hub told last.
 *
 * What was kept is only shown while the hub cannot be reached, which the page says; whatever the hub says takes its
 * place.
 */
import { effect, signal } from "@preact/signals";
import type { Ports } from "../link/ports";
import type { Json } from "../model/wire.gen";
import { workerUrl } from "./trusted";
import type { Hub } from "./hub";
import { isState, Kept, sessionOf } from "./kept";
import { opened } from "./opening";
import type { SessionRow } from "./rows";

/** Milliseconds without the hub after which the list is shown as it was. */
const PATIENCE = 1500;
const ROWS = 100;
/** A hub that is closing, and proxies that do not reach it. */
const AWAY: ReadonlySet<number> = new Set([502, 503, 504]);
/** Milliseconds between two looks for a newer version, by a page that stays open for days. */
const LOOKS_APART = 600_000;

const kept = new Kept(
  typeof caches === "undefined" ? undefined : caches,
  typeof document === "undefined" ? "http://localhost/" : document.baseURI,
);

let over = false;

// -- what the hub told ------------------------------------------------------------------------------------------------

/** At logout: nothing is kept any more until the page is loaded again. */
export function forget(): Promise<void> {
  over = true;
  return kept.forget();
}

/** Ports that keep each session that is read, and give it back when there is no answer. */
export function keeping(ports: Ports, store: Kept = kept): Ports {
  return {
    ...ports,
    fetch: async (path, request = {}) => {
      const id = (request.method ?? "GET") === "GET" ? sessionOf(path) : null;
      const answer = await ports.fetch(path, request).catch((error: Error) => error);
      if (answer instanceof Error || AWAY.has(answer.status)) {
        const body = id === null ? null : await store.session(id);
        if (isState(body)) return { status: 200, body };
        if (answer instanceof Error) throw answer;
      } else if (answer.status === 401) void store.forget();
      else if (id !== null && !over && answer.status === 200 && isState(answer.body))
        void store.keepSession(id, answer.body);
      return answer;
    },
  };
}

/** Keep what is shown whenever the page is left, show it while there is no hub, and forget it for strangers. */
export function watchOffline(hub: Hub): () => void {
  const keep = () => document.visibilityState === "hidden" && keepShown(hub);
  document.addEventListener("visibilitychange", keep);
  const timer = setTimeout(() => void showRows(hub), PATIENCE);
  const stop = effect(() => {
    if (hub.status.value.phase === "refused") void kept.forget();
  });
  return () => {
    document.removeEventListener("visibilitychange", keep);
    clearTimeout(timer);
    stop();
  };
}

function keepShown(hub: Hub): void {
  if (over || hub.me.peek() === null || hub.status.peek().phase === "refused") return;
  if (hub.rows.peek()) void kept.keepRows(hub.sessions.peek().slice(0, ROWS) as unknown as Json[]);
  const open = opened.peek();
  const session = open?.session.peek();
  if (open && session && session.fields.seq > 0) void kept.keepSession(open.id, session.snapshot() as unknown as Json);
}

async function showRows(hub: Hub): Promise<void> {
  const rows = (await kept.rows()) as unknown as SessionRow[] | null;
  if (rows && hub.rows.peek() === null && hub.status.peek().phase !== "refused")
    hub.rows.value = new Map(rows.map((row) => [row.id, row]));
}

// -- the page's files -------------------------------------------------------------------------------------------------

/** Whether a newer version of the page than this one is there. */
export const updateReady = signal(false);
let waiting: ServiceWorker | null = null;

/** Go over to the newer version. The page is loaded again. */
export function applyUpdate(): void {
  if (!waiting) return;
  navigator.serviceWorker.addEventListener("controllerchange", () => location.reload(), { once: true });
  waiting.postMessage("take over");
}

export function registerWorker(): void {
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.register(workerUrl("sw.js"), { updateViaCache: "none" }).then(watchWorker, () => {
    // a browser may forbid it; the page works without, online
  });
}

function watchWorker(registration: ServiceWorkerRegistration | undefined): void {
  if (!registration) return; // where workers are blocked, some browsers say nothing
  const look = () => registration.waiting && void meet(registration.waiting);
  const found = () => registration.installing?.addEventListener("statechange", look);
  look();
  found(); // one may be on its way already
  registration.addEventListener("updatefound", found);
  let looked = Date.now();
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState !== "visible" || Date.now() - looked < LOOKS_APART) return;
    looked = Date.now();
    registration.update().catch(() => {}); // no hub, no newer version
  });
}

/** A worker of the version that this page is of already can just take over; nothing changes by it. */
async function meet(worker: ServiceWorker): Promise<void> {
  const version = await versionOf(worker);
  if (version === document.documentElement.dataset["version"]) worker.postMessage("take over");
  else if (navigator.serviceWorker.controller) {
    waiting = worker;
    updateReady.value = true;
  }
}

function versionOf(worker: ServiceWorker): Promise<unknown> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) => resolve(data);
    worker.postMessage("version", [port2]);
  });
}
