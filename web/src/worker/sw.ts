/**
 * The service worker: keeps the page and its files, so that it opens without the hub and at once with it.
 *
 * The page is asked for first and taken from the cache when there is no answer; its files have their content in their
 * names and never change. A new version waits until somebody wants it. The build says which files there are.
 *
 * A notification that a page showed by it leads to the session it is about, in a page that is open or in a new one.
 */
import { addressOf, cacheName, isOutdated, treatmentOf } from "./treatment";

declare const SHELL: readonly string[];
declare const VERSION: string;

interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}
interface NotificationEvent extends ExtendableEvent {
  readonly notification: Notification;
}
interface Client {
  readonly url: string;
  focus(): Promise<unknown>;
  postMessage(data: unknown): void;
}
interface Worker {
  readonly registration: { readonly scope: string };
  readonly clients: {
    matchAll(wanted: { type: "window"; includeUncontrolled: true }): Promise<readonly Client[]>;
    openWindow(address: string): Promise<unknown>;
  };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", act: (event: ExtendableEvent) => void): void;
  addEventListener(type: "fetch", act: (event: FetchEvent) => void): void;
  addEventListener(type: "notificationclick", act: (event: NotificationEvent) => void): void;
  addEventListener(type: "message", act: (event: MessageEvent) => void): void;
}

/** Milliseconds after which a page that was kept is better than one that may still come. */
const PATIENCE = 4000;

const worker = self as unknown as Worker;
const scope = worker.registration.scope;
const name = cacheName(scope, VERSION);
const files: ReadonlySet<string> = new Set(SHELL);

worker.addEventListener("install", (event) => event.waitUntil(fill()));
worker.addEventListener("activate", (event) => event.waitUntil(tidy()));
worker.addEventListener("fetch", (event) => {
  const treatment = treatmentOf(event.request, scope, files);
  if (treatment === "page") event.respondWith(page(event.request));
  if (treatment === "file") event.respondWith(file(event.request));
});
worker.addEventListener("message", ({ data, ports }) => {
  if (data === "version") ports[0]?.postMessage(VERSION);
  if (data === "take over") void worker.skipWaiting();
});

worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(lead(event.notification.data));
});

async function lead(data: unknown): Promise<void> {
  const id = (data as { sessionId?: unknown } | null)?.sessionId;
  if (typeof id !== "string") return;
  const pages = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = pages.find(({ url }) => url.startsWith(scope));
  if (!page) return void (await worker.clients.openWindow(addressOf(scope, id)));
  page.postMessage({ sessionId: id });
  await page.focus();
}

async function fill(): Promise<void> {
  const cache = await caches.open(name);
  await cache.addAll(["", ...SHELL].map((path) => new Request(new URL(path, scope), { cache: "no-cache" })));
}

async function tidy(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(names.filter((one) => isOutdated(one, scope, VERSION)).map((one) => caches.delete(one)));
}

async function page(request: Request): Promise<Response> {
  const kept = await caches.match(scope, { cacheName: name });
  if (!kept) return fetch(request);
  const late = new Promise<Response>((resolve) => setTimeout(() => resolve(kept), PATIENCE));
  const asked = fetch(request).then(
    // a proxy that cannot reach the hub is no better than no answer
    (answer) => (answer.status >= 502 && answer.status <= 504 ? kept : answer),
    () => kept,
  );
  return Promise.race([asked, late]);
}

async function file(request: Request): Promise<Response> {
  return (await caches.match(request, { cacheName: name, ignoreVary: true })) ?? fetch(request);
}
