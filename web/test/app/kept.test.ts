import { expect, test } from "vitest";
import { isState, Kept, sessionOf } from "../../src/app/kept";
import { keeping } from "../../src/app/offline";
import type { Answer, Ports } from "../../src/link/ports";

/** Caches as browsers have them, as far as they are used here. */
function testCaches(): CacheStorage & { names: Map<string, Map<string, string>> } {
  const names = new Map<string, Map<string, string>>();
  const opened = (entries: Map<string, string>) => ({
    match: async (url: string) => (entries.has(url) ? new Response(entries.get(url)) : undefined),
    put: async (url: string, answer: Response) => {
      const text = await answer.text();
      entries.delete(url);
      entries.set(url, text);
    },
    delete: async (key: string | Request) => entries.delete(typeof key === "string" ? key : key.url),
    keys: async () => [...entries.keys()].map((url) => ({ url })),
  });
  const found = {
    names,
    open: async (name: string) => {
      const entries = names.get(name) ?? new Map<string, string>();
      names.set(name, entries);
      return opened(entries);
    },
    delete: async (name: string) => names.delete(name),
  };
  return found as unknown as CacheStorage & { names: Map<string, Map<string, string>> };
}

const state = (seq: number) => ({ seq, items: [] });

test("the sessions that were kept last are there", async () => {
  const kept = new Kept(testCaches(), "http://hub/");
  for (let number = 1; number <= 12; number += 1) await kept.keepSession(`s/${number}`, state(number));
  expect(await kept.session("s/1")).toBeNull();
  expect(await kept.session("s/2")).toBeNull();
  await kept.keepSession("s/3", state(33));
  await kept.keepSession("s/13", state(13));
  expect(await kept.session("s/3")).toEqual(state(33));
  expect(await kept.session("s/4")).toBeNull();
});

test("hubs below other paths keep their own, and forget their own", async () => {
  const caches = testCaches();
  const [one, other] = [new Kept(caches, "http://site/a/"), new Kept(caches, "http://site/b/#/x")];
  await one.keepRows([{ id: "1" }]);
  await other.keepRows([{ id: "2" }]);
  await one.forget();
  expect(await one.rows()).toBeNull();
  expect(await other.rows()).toEqual([{ id: "2" }]);
});

test("without caches nothing is kept and nothing fails", async () => {
  const kept = new Kept(undefined, "http://hub/");
  await kept.keepSession("s", state(1));
  await kept.keepRows([]);
  await kept.forget();
  expect([await kept.session("s"), await kept.rows()]).toEqual([null, null]);
});

test("a cache that fails keeps nothing from being forgotten", async () => {
  const caches = testCaches();
  const kept = new Kept(caches, "http://hub/");
  await kept.keepRows([{ id: "1" }]);
  const open = caches.open.bind(caches);
  caches.open = async (name) =>
    Object.assign(await open(name), { keys: () => Promise.reject(new Error("the disk is full")) });
  await kept.keepSession("s", state(1));
  await kept.forget();
  expect(caches.names.size).toBe(0);
});

test("paths of a session's state", () => {
  expect(sessionOf("sessions/ses_1")).toBe("ses_1");
  expect(sessionOf("sessions/a%2Fb")).toBe("a/b");
  for (const path of ["sessions", "sessions?x", "sessions/1/events", "sessions/1?items=false", "approvals/1"])
    expect(sessionOf(path)).toBeNull();
  expect([isState({ items: [] }), isState({}), isState(null)]).toEqual([true, false, false]);
});

test("what was read is given back when there is no answer, until the hub knows us no more", async () => {
  const kept = new Kept(testCaches(), "http://hub/");
  let answer: Answer | null = { status: 200, body: state(7) };
  const asked = async () => {
    if (!answer) throw new TypeError("no network");
    return answer;
  };
  const { fetch } = keeping({ fetch: asked } as unknown as Ports, kept);
  await fetch("sessions/s");
  await expect.poll(() => kept.session("s")).toEqual(state(7));
  answer = null;
  expect(await fetch("sessions/s")).toEqual({ status: 200, body: state(7) });
  answer = { status: 503, body: null };
  expect(await fetch("sessions/s")).toEqual({ status: 200, body: state(7) });
  expect(await fetch("sessions/other")).toBe(answer);
  answer = null;
  await expect(fetch("sessions/other")).rejects.toThrow("no network");
  await expect(fetch("sessions/s", { method: "DELETE" })).rejects.toThrow("no network");
  answer = { status: 401, body: null };
  expect((await fetch("whoami")).status).toBe(401);
  await expect.poll(() => kept.session("s")).toBeNull();
});

test("a session that is deleted is kept no more", async () => {
  const kept = new Kept(testCaches(), "http://hub/");
  await kept.keepSession("s", state(7));
  const { fetch } = keeping({ fetch: async () => ({ status: 409, body: null }) } as unknown as Ports, kept);
  await fetch("sessions/s", { method: "DELETE" });
  expect(await kept.session("s")).toEqual(state(7));
  const { fetch: remove } = keeping({ fetch: async () => ({ status: 204, body: null }) } as unknown as Ports, kept);
  await remove("sessions/s", { method: "DELETE" });
  await expect.poll(() => kept.session("s")).toBeNull();
});
