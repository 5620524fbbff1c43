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
import type { OpenSession } from "./open";
import { opened } from "./opening";
import type { SessionRow } from "./rows";

/** Milliseconds without the hub after which the list is shown as it was. */
const PATIENCE = 1500;
const ROWS = 100;
/** Milliseconds after a change of the list in which it is kept. */
const SOON = 3000;
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
      const method = request.method ?? "GET";
      const id = method === "GET" ? sessionOf(path) : null;
      const answer = await ports.fetch(path, request).catch((error: Error) => error);
      const deleted = method === "DELETE" && !(answer instanceof Error) && answer.status < 300 ? sessionOf(path) : null;
      if (deleted !== null) void store.dropSession(deleted);
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

/** Keep what is shown as it changes, show it while there is no hub, and forget it for strangers. */
export function watchOffline(hub: Hub, store: Kept = kept): () => void {
  const hide = () => {
    if (document.visibilityState !== "hidden") return;
    keepRows(hub, store);
    keepSession(hub, store, opened.peek());
  };
  document.addEventListener("visibilitychange", hide);
  const timer = setTimeout(() => void showRows(hub, store), PATIENCE);
  const stops = [
    effect(() => {
      if (hub.status.value.phase === "refused") void store.forget();
    }),
    watchRows(hub, store),
    watchOpened(hub, store),
  ];
  return () => {
    document.removeEventListener("visibilitychange", hide);
    clearTimeout(timer);
    stops.forEach((stop) => stop());
  };
}

/** A page that is loaded anew has no time left for it, so the list is kept a little after it changed. */
function watchRows(hub: Hub, store: Kept): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  const stop = effect(() => {
    void hub.sessions.value;
    timer ??= setTimeout(() => {
      timer = null;
      keepRows(hub, store);
    }, SOON);
  });
  return () => {
    stop();
    if (timer !== null) clearTimeout(timer);
  };
}

/** A session is kept as it is when a turn of it ends, and when somebody leaves it. */
function watchOpened(hub: Hub, store: Kept): () => void {
  let last: OpenSession | null = null;
  let running = false;
  return effect(() => {
    const open = opened.value;
    void open?.head.value;
    const now = open?.session.value?.fields.turn?.open ?? false;
    if (last && (open !== last || (running && !now))) keepSession(hub, store, last);
    [last, running] = [open, now];
  });
}

const mayKeep = (hub: Hub): boolean => !over && hub.me.peek() !== null && hub.status.peek().phase !== "refused";

function keepRows(hub: Hub, store: Kept): void {
  if (mayKeep(hub) && hub.rows.peek()) void store.keepRows(hub.sessions.peek().slice(0, ROWS) as unknown as Json[]);
}

function keepSession(hub: Hub, store: Kept, open: OpenSession | null): void {
  const session = open?.session.peek();
  if (!mayKeep(hub) || !open || !session?.fields.seq || hub.wasDeleted(open.id)) return;
  void store.keepSession(open.id, session.snapshot() as unknown as Json);
}

async function showRows(hub: Hub, store: Kept): Promise<void> {
  const rows = (await store.rows()) as unknown as SessionRow[] | null;
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
