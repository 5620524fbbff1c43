/** What the palette finds: sessions, actions, and directories to start in. */
import { foundOf, type How, unfolded, wish } from "../../app/found";
import type { Hub } from "../../app/hub";
import { go, type Route, route } from "../../app/route";
import { nameOf, type SessionRow, type Word, wordOf } from "../../app/rows";
import { panel } from "../../app/shortcuts";
import { attempt } from "../../app/toasts";
import { theme } from "../../app/settings";
import type { IconName } from "../../ui/icon";
import { copyId, isRunning, setArchived, stopTurn } from "../sessions/deeds";
import { projectOf, wordsOf } from "../sessions/filter";
import { startIn } from "../sessions/start";
import { match } from "./fuzzy";

export interface Entry {
  id: string;
  group: "Actions" | "Sessions" | "Directories";
  icon: IconName;
  text: string;
  /** Beside it, smaller; found by it as well. */
  under?: string;
  word?: Word;
  /** As the registry of keys has it. */
  keys?: string;
  /** Words that it is found by and that are not shown. */
  also?: string;
  run(): void;
}

/** An entry that fits, and which letters of its text do. */
export interface Fit {
  entry: Entry;
  at: number[];
}

const MOST = 40;
const RECENT = 8;
/** Sessions that are offered before anything is typed. */
const FIRST = 5;

export function entriesOf(hub: Hub): Entry[] {
  return [...actionsOf(hub), ...hub.sessions.value.map(sessionEntry), ...directories(hub)];
}

function sessionEntry(row: SessionRow): Entry {
  return {
    id: `session ${row.id}`,
    group: "Sessions",
    icon: "terminal",
    text: nameOf(row),
    under: `${row.agent} · ${projectOf(row.cwd)}`,
    also: row.cwd,
    word: wordOf(row.status, row.pendingApprovals),
    run: () => go({ view: "session", id: row.id }),
  };
}

/** The one that waits after the one that is open, in the order of the list. */
export function nextWaiting(rows: readonly SessionRow[], openId: string | null): SessionRow | undefined {
  const waiting = rows.filter((row) => wordOf(row.status, row.pendingApprovals) === "waiting for you");
  const at = waiting.findIndex((row) => row.id === openId);
  return waiting[(at + 1) % waiting.length];
}

const goTo = (to: Route) => () => go(to);

function actionsOf(hub: Hub): Entry[] {
  const at = route.value;
  const open = "id" in at ? hub.row(at.id) : undefined;
  const next = nextWaiting(hub.sessions.value, open?.id ?? null);
  const action = (icon: IconName, text: string, run: () => void, more: Partial<Entry> = {}): Entry => ({
    id: text,
    group: "Actions",
    icon,
    text,
    run,
    ...more,
  });
  const all: (Entry | false | undefined)[] = [
    next &&
      next.id !== open?.id &&
      action("bell", "Jump to the next waiting session", goTo({ view: "session", id: next.id }), {
        under: nameOf(next),
      }),
    hub.may("prompt") && action("plus", "New session", goTo({ view: "new" }), { keys: "n", also: "start create" }),
    action("shield", "Approvals", goTo({ view: "approvals" }), { also: "decide permissions" }),
    ...(open ? ofSession(hub, open, action) : []),
    action("list", "All sessions", goTo({ view: "sessions" })),
    action("search", "Found on this machine", showFound, { also: "discover terminal watch adopt continue elsewhere" }),
    action("phone", "Devices", goTo({ view: "devices" }), { also: "pair qr phone revoke rules log out" }),
    ...(["system", "light", "dark"] as const)
      .filter((one) => one !== theme.value)
      .map((one) =>
        action(one === "light" ? "sun" : "moon", `Theme: ${one}`, () => (theme.value = one), {
          also: "appearance mode colour",
        }),
      ),
    action("tool", "Settings", () => (panel.value = "settings"), {
      keys: "mod+,",
      also: "notifications about version",
    }),
    action("keyboard", "Keys", () => (panel.value = "help"), { keys: "?", also: "help shortcuts" }),
  ];
  return all.filter((one) => one !== false && one !== undefined);
}

function showFound(): void {
  unfolded.value = true;
  go({ view: "sessions" });
}

/** The session that is watched in this one may be gone by now. */
async function wanted(hub: Hub, sessionId: string, how: How): Promise<void> {
  await attempt("It cannot be found", async () => {
    const found = await foundOf(hub, sessionId);
    if (!found) throw new Error("its record is not there any more");
    wish.value = { found, how };
  });
}

type Make = (icon: IconName, text: string, run: () => void, more?: Partial<Entry>) => Entry;

function ofSession(hub: Hub, row: SessionRow, action: Make): Entry[] {
  const under = nameOf(row);
  const replayed = route.value.view === "replay";
  const own = [
    replayed
      ? action("terminal", "Leave the replay", goTo({ view: "session", id: row.id }), { under })
      : action("play", "Replay this session", goTo({ view: "replay", id: row.id }), { under }),
    action("copy", "Copy the id of this session", () => void copyId(row.id), { under }),
  ];
  if (!hub.may("prompt")) return own;
  const ways = row.watched
    ? [
        action("play", "Continue this session here", () => void wanted(hub, row.id, "resume"), {
          under,
          also: "adopt",
        }),
        action("git", "Fork this session", () => void wanted(hub, row.id, "fork"), { under, also: "adopt copy" }),
      ]
    : [];
  return [
    ...ways,
    ...(isRunning(row)
      ? [action("stop", "Stop this turn", () => void stopTurn(hub, row.id), { under, also: "cancel" })]
      : []),
    ...own,
    action("edit", "Rename this session", () => (panel.value = "rename"), { under, also: "title" }),
    row.archived === null
      ? action("archive", "Archive this session", () => archive(hub, row), { under })
      : action("archive", "Bring this session back", () => void setArchived(hub, row, false), { under }),
  ];
}

function archive(hub: Hub, row: SessionRow): void {
  if (isRunning(row)) panel.value = "archive";
  else void setArchived(hub, row, true);
}

/** Where a new session starts, by the form for one. */
function directories(hub: Hub): Entry[] {
  if (!hub.may("prompt")) return [];
  const known = [...new Set(hub.sessions.value.map((row) => row.cwd))].slice(0, RECENT);
  return known.map((cwd) => ({
    id: `directory ${cwd}`,
    group: "Directories",
    icon: "folder",
    text: `New session in ${projectOf(cwd)}`,
    under: cwd,
    run: () => {
      startIn.value = cwd;
      go({ view: "new" });
    },
  }));
}

/** Those that fit, the best first; without a wish, as they come. */
export function fitting(entries: readonly Entry[], wanted: string): Fit[] {
  if (!wanted.trim()) return untyped(entries).map((entry) => ({ entry, at: [] }));
  const words = wordsOf(wanted);
  const found: (Fit & { score: number })[] = [];
  for (const entry of entries) {
    const shown = match(wanted, entry.text);
    if (shown) found.push({ entry, ...shown });
    else {
      // what is beside it must have the words themselves, and counts less than what it is called
      const beside = `${entry.text} ${entry.under ?? ""} ${entry.also ?? ""}`.toLowerCase();
      if (words.every((word) => beside.includes(word))) found.push({ entry, at: [], score: 0 });
    }
  }
  return found.sort((one, other) => other.score - one.score).slice(0, MOST);
}

/** The sessions that are most likely wanted, then what can be done. */
function untyped(entries: readonly Entry[]): Entry[] {
  const sessions = entries.filter((one) => one.group === "Sessions").slice(0, FIRST);
  return [...sessions, ...entries.filter((one) => one.group === "Actions")];
}
