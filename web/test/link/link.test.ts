import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { delay } from "../../src/link/backoff";
import { SessionFeed } from "../../src/link/feed";
import type { Sink } from "../../src/link/follower";
import { CommandFailed, Link, type LinkEvents, type Phase } from "../../src/link/link";
import type { Failed, SessionEvent } from "../../src/model/wire.gen";
import { delta, settled, World } from "./world";

class Page implements LinkEvents, Sink {
  readonly phases: Phase[] = [];
  readonly heard: string[] = [];
  seqs: number[] = [];
  resets = 0;
  missing: string[] = [];
  readonly link: Link;

  constructor(readonly world: World) {
    this.link = new Link(world.ports, this);
  }

  status = ({ phase }: { phase: Phase }) => void this.phases.push(phase);
  greeted = () => void this.heard.push("greeted");
  news = ({ type }: { type: string }) => void this.heard.push(type);
  events = (events: SessionEvent[]) => void this.seqs.push(...events.map((event) => event.seq));
  gone = ({ code }: Failed) => void this.missing.push(code);
  reset = () => {
    this.resets += 1;
    this.seqs = [];
  };
}

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);

async function live(world = new World(), events = 5): Promise<Page> {
  world.happen(events);
  const page = new Page(world);
  page.link.follow("s", 0, page);
  await settled();
  return page;
}

describe("coming in", () => {
  test("connecting, catching up, live", async () => {
    const page = await live();
    expect(page.phases).toEqual(["catching_up", "live"]);
    expect(page.heard).toEqual(["greeted", "sessions_list", "approvals"]);
    expect(page.seqs).toEqual(upTo(5));
    page.world.happen();
    await settled();
    expect(page.seqs).toEqual(upTo(6));
  });

  test("with no session to follow it is live at once", async () => {
    const page = new Page(new World());
    await settled();
    expect(page.link.status).toMatchObject({ phase: "live", lane: "socket" });
  });

  test("from a cursor on", async () => {
    const world = new World();
    world.happen(9);
    const page = new Page(world);
    page.link.follow("s", 7, page);
    await settled();
    expect(page.seqs).toEqual([8, 9]);
  });

  test("a session that is not there", async () => {
    const page = new Page(new World());
    page.link.follow("other", 0, page);
    await settled();
    expect(page.missing).toEqual(["unknown_session"]);
    expect(page.link.status.phase).toBe("live");
  });

  test("who is not known is refused, and comes in after logging in", async () => {
    const world = new World();
    world.known = false;
    const page = await live(world);
    expect(page.phases).toEqual(["refused"]);
    await world.clock.pass(600_000);
    expect(world.opened).toBe(1);
    world.known = true;
    page.link.retry();
    await settled();
    expect(page.seqs).toEqual(upTo(5));
  });

  test("who logs in as somebody else comes anew, and misses and doubles nothing", async () => {
    const page = await live();
    page.link.retry();
    expect(page.link.status.phase).toBe("reconnecting");
    await settled();
    expect([page.world.opened, page.link.status.phase]).toEqual([2, "live"]);
    expect(page.seqs).toEqual(upTo(5));
  });
});

describe("coming back", () => {
  test("is shown at once, and goes on from the cursor", async () => {
    const page = await live();
    page.world.cut();
    expect(page.link.status.phase).toBe("reconnecting");
    page.world.happen(3);
    await page.world.clock.pass(500);
    expect(page.phases.slice(2)).toEqual(["reconnecting", "catching_up", "live"]);
    expect(page.seqs).toEqual(upTo(8));
    expect(page.world.said.at(-1)).toMatchObject({ type: "subscribe", after: 5 });
  });

  test("takes longer and longer while the hub is away, and stops nobody else", async () => {
    const page = await live();
    page.world.sockets = "refused";
    page.world.http = "down";
    page.world.cut();
    await page.world.clock.pass(300_000);
    expect(page.world.opened).toBeLessThan(20);
    expect(page.link.status.phase).toBe("reconnecting");
    page.world.sockets = "through";
    page.world.http = "through";
    page.world.happen();
    page.link.wake();
    await settled();
    expect(page.link.status.phase).toBe("live");
    expect(page.seqs).toEqual(upTo(6));
  });

  test("a connection that died in silence is noticed", async () => {
    const page = await live();
    page.world.vanish();
    page.world.happen(2);
    await page.world.clock.pass(27_000);
    expect(page.link.status.phase).toBe("live");
    await page.world.clock.pass(2_000);
    expect(page.seqs).toEqual(upTo(7));
  });

  test("a network that is said to be gone is believed within half a second, unless the hub answers", async () => {
    const page = await live();
    page.link.doubt();
    await page.world.clock.pass(10_000);
    expect([page.world.opened, page.link.status.phase]).toEqual([1, "live"]);
    page.world.vanish();
    page.world.sockets = "refused";
    page.link.doubt();
    await page.world.clock.pass(450);
    expect(page.link.status.phase).toBe("reconnecting");
  });

  test("silence alone is no loss", async () => {
    const page = await live();
    await page.world.clock.pass(600_000);
    expect(page.world.opened).toBe(1);
    expect(page.phases).toEqual(["catching_up", "live"]);
  });

  test("a page that wakes up on a dead connection is back within seconds", async () => {
    const page = await live();
    page.world.vanish();
    page.world.happen(2);
    page.world.clock.time += 3_600_000;
    page.link.wake();
    await page.world.clock.pass(4_000);
    expect(page.seqs).toEqual(upTo(7));
    expect(page.link.status.phase).toBe("live");
  });

  test("a page that wakes up reads its tail again, and nothing is doubled", async () => {
    const page = await live();
    page.link.wake();
    page.link.wake();
    page.world.happen();
    await settled();
    expect(page.world.said.filter(({ type }) => type === "subscribe")).toHaveLength(2);
    expect(page.seqs).toEqual(upTo(6));
    expect(page.phases).toEqual(["catching_up", "live"]);
  });

  test("another log in its place starts the session anew", async () => {
    const page = await live();
    page.world.log.length = 2;
    page.world.cut();
    await page.world.clock.pass(500);
    expect(page.resets).toBe(1);
    expect(page.seqs).toEqual([1, 2]);
  });

  test("a device that was sent away does not come back", async () => {
    const page = await live();
    page.world.cut(1008);
    await page.world.clock.pass(100_000);
    expect(page.link.status.phase).toBe("refused");
    expect(page.world.opened).toBe(1);
  });

  test("waits are spread by chance, and bounded", () => {
    expect(delay(1, 0)).toBe(125);
    expect(delay(1, 1)).toBe(250);
    expect(delay(4, 0.5)).toBe(1500);
    expect(delay(500, 1)).toBe(30_000);
  });
});

describe("what comes is new", () => {
  test("events that come twice count once", async () => {
    const page = await live();
    const [peer] = page.world.peers;
    page.world.tell(peer!, { type: "events", sessionId: "s", events: [delta(4), delta(5)] as never });
    await settled();
    expect(page.seqs).toEqual(upTo(5));
  });

  test("what was lost on the way is asked for", async () => {
    const page = await live();
    page.world.log.push(delta(6));
    page.world.happen();
    await settled();
    expect(page.seqs).toEqual(upTo(7));
  });

  test("what is nowhere is not waited for", async () => {
    const page = await live();
    page.world.log.push(delta(7), delta(8));
    const slice = page.world.log.slice.bind(page.world.log);
    page.world.log.slice = (from?: number) => slice().filter((event) => event.seq > (from ?? 0));
    const [peer] = page.world.peers;
    page.world.tell(peer!, { type: "events", sessionId: "s", events: [delta(7)] as never });
    await settled();
    await settled();
    expect(page.seqs).toEqual([...upTo(5), 7, 8]);
  });

  test("rubbish and messages of a later hub are passed over", async () => {
    const page = await live();
    const [peer] = page.world.peers;
    for (const text of ["", "{", "7", "[]", '{"type":"constructor"}', '{"type":"weather"}', "null"])
      peer!.events.message(text);
    page.world.happen();
    await settled();
    expect(page.seqs).toEqual(upTo(6));
  });
});

test.each(["through", "refused"] as const)("rows of sessions are told, with WebSockets %s", async (how) => {
  const world = new World();
  world.sockets = how;
  world.change("a", "1");
  const page = await live(world);
  await world.clock.pass(5_000);
  page.heard.length = 0;
  world.change("a", "2");
  world.change("b", "3");
  await world.clock.pass(5_000);
  expect(page.heard.filter(isOfSessions)).toEqual(["session_changed", "session_changed"]);
  world.change("a", null);
  await world.clock.pass(5_000);
  expect(page.heard.filter(isOfSessions).slice(2)).toEqual(["session_deleted"]);
  page.link.close();
});

const isOfSessions = (told: string): boolean => told.startsWith("session_");

test("a command that no frame can hold is refused here, and costs no connection", async () => {
  const page = await live();
  const said = page.link.command("s", { command: "send-message", content: "ä".repeat(5 << 20) });
  await expect(said).rejects.toMatchObject({ failure: { code: "too_large" } });
  expect(page.world.commands.size).toBe(0);
  await expect(page.link.command("s", { command: "small" })).resolves.toBe("small");
});

describe("long polling", () => {
  test.each(["refused", "held"] as const)("where a proxy has WebSockets %s", async (how) => {
    const world = new World();
    world.sockets = how;
    const page = await live(world);
    await world.clock.pass(21_000);
    expect(page.link.status).toMatchObject({ phase: "live", lane: "poll" });
    expect(page.seqs).toEqual(upTo(5));
    expect(page.heard.slice(0, 3)).toEqual(["greeted", "sessions_list", "approvals"]);
    world.happen(4);
    await settled();
    await settled();
    expect(page.seqs).toEqual(upTo(9));
  });

  test("is tried as soon as a WebSocket was open and silent", async () => {
    const world = new World();
    world.sockets = "held";
    const page = await live(world);
    await world.clock.pass(7_000);
    expect([world.opened, page.link.status.phase, page.link.status.lane]).toEqual([1, "live", "poll"]);
  });

  test("a network that is said to be gone is tried", async () => {
    const page = await polling();
    page.link.doubt();
    await page.world.clock.pass(1_000);
    expect(page.link.status.phase).toBe("live");
    page.world.http = "down";
    page.link.doubt();
    await settled();
    expect(page.link.status.phase).toBe("reconnecting");
  });

  async function polling(): Promise<Page> {
    const world = new World();
    world.sockets = "refused";
    const page = await live(world);
    await world.clock.pass(2_000);
    expect(page.link.status).toMatchObject({ phase: "live", lane: "poll" });
    return page;
  }

  test("a request that is never answered is given up", async () => {
    const page = await polling();
    page.world.http = "down";
    await page.world.clock.pass(45_000);
    expect(page.link.status.phase).toBe("reconnecting");
    page.world.http = "through";
    await page.world.clock.pass(60_000);
    expect(page.link.status).toMatchObject({ phase: "live", lane: "poll" });
    expect(page.seqs).toEqual(upTo(5));
  });

  test("a WebSocket that gets through again takes over without a gap", async () => {
    const page = await polling();
    page.world.sockets = "through";
    await page.world.clock.pass(301_000);
    expect(page.link.status).toMatchObject({ phase: "live", lane: "socket" });
    page.world.happen(2);
    await settled();
    expect(page.seqs).toEqual(upTo(7));
  });

  test("one that does not leaves polling alone", async () => {
    const page = await polling();
    await page.world.clock.pass(900_000);
    page.world.happen();
    await settled();
    await settled();
    expect(page.link.status).toMatchObject({ phase: "live", lane: "poll" });
    expect(page.seqs).toEqual(upTo(6));
  });

  test("what was begun elsewhere is taken to change, and no more once it is over", async () => {
    const page = await polling();
    const told = () => page.heard.filter((one) => one === "discovered_changed").length;
    await page.world.clock.pass(12_000);
    expect(told()).toBe(2);
    page.link.close();
    await page.world.clock.pass(30_000);
    expect(told()).toBe(2);
  });

  test("commands go by request", async () => {
    const page = await polling();
    expect(await page.link.command("s", { command: "cancel" })).toBe("done");
  });

  test("another log, and a session that is not there", async () => {
    const page = await polling();
    page.link.follow("other", 0, page);
    page.link.follow("s", 99, page);
    await settled();
    await settled();
    expect(page.missing).toEqual(["unknown_session"]);
    expect([page.resets, page.seqs]).toEqual([1, upTo(5)]);
  });

  test("who is not known any more is refused", async () => {
    const page = await polling();
    page.world.known = false;
    page.world.happen();
    await settled();
    await settled();
    expect(page.link.status.phase).toBe("refused");
  });
});

describe("commands", () => {
  test("are answered", async () => {
    const page = await live();
    await expect(page.link.command("s", { command: "cancel" })).resolves.toBe("cancel");
  });

  test("that are refused say why", async () => {
    const page = await live();
    const refused = page.link.command("s", { command: "refused" });
    await expect(refused).rejects.toMatchObject({ failure: { code: "conflict" } });
  });

  test("wait for the hub, and are sent again under the same id until they are answered", async () => {
    const page = await live();
    page.world.vanish();
    const answered = page.link.command("s", { command: "cancel" }, "mine");
    await page.world.clock.pass(40_000);
    await expect(answered).resolves.toBe("cancel");
    expect(page.world.commands.get("mine")).toBe(1);
  });

  test("about this very moment are never sent later", async () => {
    const page = await live();
    await expect(page.link.commandNow("s", { command: "cancel" })).resolves.toBe("cancel");
    page.world.vanish();
    const underWay = page.link.commandNow("s", { command: "cancel" });
    const refused = expect(underWay).rejects.toMatchObject({ failure: { code: "lost" } });
    await page.world.clock.pass(40_000);
    await refused;
    page.world.cut();
    await expect(page.link.commandNow("s", { command: "cancel" })).rejects.toMatchObject({ failure: { code: "lost" } });
    await page.world.clock.pass(40_000);
    expect(page.link.status.phase).toBe("live");
    expect([...page.world.commands.values()]).toEqual([1]);
  });

  test("end with the link", async () => {
    const page = await live();
    page.world.vanish();
    const left = page.link.command("s", { command: "cancel" });
    page.link.close();
    await expect(left).rejects.toBeInstanceOf(CommandFailed);
    await expect(page.link.command("s", { command: "cancel" })).rejects.toBeInstanceOf(CommandFailed);
    expect(page.link.status.phase).toBe("closed");
  });
});

test("whatever happens to the network, every event comes once and in order", async () => {
  const step = fc.constantFrom(
    "happen",
    "happen",
    "cut",
    "vanish",
    "wake",
    "refuse",
    "hold",
    "heal",
    "down",
    "wait",
    "restart",
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const world = new World();
      const page = await live(world, 3);
      for (const what of steps) {
        if (what === "happen") world.happen(4);
        else if (what === "cut") world.cut();
        else if (what === "vanish") world.vanish();
        else if (what === "wake") page.link.wake();
        else if (what === "refuse") world.sockets = "refused";
        else if (what === "hold") world.sockets = "held";
        else if (what === "down") world.http = "down";
        else if (what === "restart") world.cut(1012);
        else if (what === "wait") await world.clock.pass(20_000);
        else [world.sockets, world.http] = ["through", "through"];
        await world.clock.pass(200);
      }
      [world.sockets, world.http] = ["through", "through"];
      await world.clock.pass(120_000);
      expect(page.seqs).toEqual(upTo(world.log.length));
      expect(page.resets).toBe(0);
      expect(page.link.status.phase).toBe("live");
      page.link.close();
    }),
    { numRuns: 150, seed: 7 },
  );
});

describe("a session on the page", () => {
  function feed(page: Page, sessionId = "s") {
    const told = { changes: 0, gone: [] as string[] };
    const made = new SessionFeed(sessionId, page.link, page.world.ports.fetch, {
      changed: () => void (told.changes += 1),
      gone: ({ code }) => void told.gone.push(code),
    });
    return { made, told };
  }

  test("is folded from what it was and what comes", async () => {
    const world = new World();
    world.happen(4);
    const page = new Page(world);
    const { made, told } = feed(page);
    await made.open();
    await settled();
    world.happen(2);
    await settled();
    expect(told.gone).toEqual([]);
    expect(made.session?.fields.seq).toBe(6);
    expect(made.session?.fields.items).toMatchObject([{ content: [{ text: "1 2 3 4 5 6 " }] }]);
    world.log.length = 1;
    world.cut();
    await world.clock.pass(500);
    expect(made.session?.fields.items).toMatchObject([{ content: [{ text: "1 " }] }]);
    const { changes } = told;
    made.close();
    world.happen();
    await settled();
    expect(told.changes).toBe(changes);
  });

  test("that is not there says so", async () => {
    const { made, told } = feed(new Page(new World()), "other");
    await made.open();
    expect(told.gone).toEqual(["unknown_session"]);
  });
});
