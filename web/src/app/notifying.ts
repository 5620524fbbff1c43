/**
 * How the page calls for attention while nobody looks at it: notifications, the title, the badge of the app.
 *
 * The tabs of one browser agree by a channel on who shows a thing; the tag of a notification is the second guard, as
 * the browser shows one for each. A visible tab claims whatever happens, since its user sees it there. What was
 * settled elsewhere is taken away again.
 */
import { computed, effect } from "@preact/signals";
import { isObject } from "../model/json";
import { visible } from "../text/highlight/odd";
import { shortenText } from "../text/shorten";
import { isQuestionRequest, plainSummary } from "./approvals";
import type { Hub } from "./hub";
import { dotIcon } from "./icon";
import { go, type Route, route } from "./route";
import { type ApprovalRow, asksQuestion, nameOf, type SessionRow } from "./rows";
import { notify } from "./settings";
import { visible as isVisible } from "./unread";

interface Note {
  /** What it is about: the same thing has the same key in every tab. */
  key: string;
  sessionId: string;
  title: string;
  body: string;
}

interface Shown {
  close(): void;
}

const NAME = "Pilothouse";
/** Characters of a summary and of a session's name; both ends of them are shown. */
const LONGEST = 160;
const LONGEST_NAME = 80;
/** Milliseconds within which another tab may claim a thing before this one shows it. */
const CLAIM = 200;

const PLACES: Partial<Record<Route["view"], string>> = {
  new: "New session",
  approvals: "Approvals",
  devices: "Devices",
};
const WORKING: ReadonlySet<string> = new Set(["starting", "thinking", "running"]);
const WAITING: ReadonlySet<string> = new Set(["waiting_for_approval", "waiting_for_input"]);
const ENDED: Readonly<Record<string, string>> = { idle: "Finished", completed: "Done", error: "Failed" };

/** Begin. Gives the way to stop. */
export function watchNotifications(hub: Hub): () => void {
  const needed = computed(() => countNeeded(hub));
  const notes = new Notes(hub);
  const stops = [
    effect(() => void (document.title = titleOf(hub, needed.value))),
    effect(() => badge(needed.value)),
    effect(() => dotIcon(needed.value > 0)),
    effect(() => notes.approvals(new Set(hub.approvals.value.map((one) => one.id)))),
    effect(() => {
      if (hub.rows.value) notes.sessions(hub.rows.value);
    }),
    () => notes.end(),
    listenToWorker(),
  ];
  return () => stops.forEach((stop) => stop());
}

/** A notification was touched that the service worker shows. */
function listenToWorker(): () => void {
  const worker = globalThis.navigator?.serviceWorker;
  const lead = ({ data }: MessageEvent<unknown>) => {
    if (isObject(data) && typeof data["sessionId"] === "string") go({ view: "session", id: data["sessionId"] });
  };
  worker?.addEventListener("message", lead);
  return () => worker?.removeEventListener("message", lead);
}

/**
 * How many approvals and questions are pending, optionally without those of one session. A question that is part of an
 * approval is not counted again. Before the hub has sent its approvals, a stored list says how many there were.
 */
export function countNeeded(hub: Pick<Hub, "approvals" | "rows" | "me">, without?: string): number {
  const isKnown = hub.me.value !== null;
  const approvals = hub.approvals.value.filter(({ sessionId }) => sessionId !== without);
  let count = approvals.length;
  for (const row of hub.rows.value?.values() ?? []) {
    if (row.id === without) continue;
    const own = approvals.filter(({ sessionId }) => sessionId === row.id);
    if (asksQuestion(row)) count += isPartOfApproval(row, own) ? 0 : 1;
    else if (!isKnown) count += row.pendingApprovals;
  }
  return count;
}

/** Whether the question for which a session waits is part of one of its approvals, or not there at all any more. */
const isPartOfApproval = ({ status }: SessionRow, approvals: readonly ApprovalRow[]): boolean =>
  status === "waiting_for_input" ? approvals.some(({ request }) => isQuestionRequest(request)) : approvals.length > 0;

function titleOf(hub: Hub, needed: number): string {
  const at = route.value;
  const row = "id" in at ? hub.rows.value?.get(at.id) : undefined;
  const place = row ? nameOf(row) : PLACES[at.view];
  return `${needed ? `(${needed}) ` : ""}${place ? `${place} – ` : ""}${NAME}`;
}

function badge(count: number): void {
  // only an installed app has one; without a leave to show it the browser rejects
  if (!("setAppBadge" in navigator)) return;
  void (count ? navigator.setAppBadge(count) : navigator.clearAppBadge()).catch(() => {});
}

// -- notifications ----------------------------------------------------------------------------------------------------

export const canNotify = (): boolean => typeof Notification !== "undefined";

/** Switch them on or off; asks the browser's user where that was never done. False when they are not allowed. */
export async function switchNotify(on: boolean): Promise<boolean> {
  if (on && (!canNotify() || (await Notification.requestPermission()) !== "granted")) {
    notify.value = false;
    return false;
  }
  notify.value = on;
  return true;
}

class Notes {
  readonly #hub: Hub;
  readonly #channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("pilothouse-notes");
  readonly #claimed = new Set<string>();
  readonly #shown = new Map<string, Shown>();
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();
  #pending: ReadonlySet<string> | null = null;
  #rows: ReadonlyMap<string, SessionRow> | null = null;

  constructor(hub: Hub) {
    this.#hub = hub;
    if (this.#channel) this.#channel.onmessage = ({ data }) => typeof data === "string" && this.#heard(data);
  }

  end(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#channel?.close();
  }

  /** What was pending when the page opened is no news. */
  approvals(pending: ReadonlySet<string>): void {
    const before = this.#pending;
    // until the hub has listed its sessions, nothing is known
    if (this.#hub.rows.peek() !== null) this.#pending = pending;
    for (const id of before ?? []) if (!pending.has(id)) this.#settle(`approval:${id}`);
    if (before) for (const id of pending) if (!before.has(id)) this.#approval(id);
  }

  #approval(id: string): void {
    const asked = this.#hub.approvals.peek().find((one) => one.id === id);
    if (!asked) return;
    const { request, sessionId } = asked;
    const isQuestion = isQuestionRequest(request);
    if (isQuestion) this.#settle(`question:${sessionId}`);
    this.#tell({
      key: `approval:${id}`,
      sessionId,
      title: isQuestion ? "A question for you" : "Approval needed",
      body: plainSummary(request, this.#hub.row(sessionId)?.cwd, LONGEST),
    });
  }

  sessions(rows: ReadonlyMap<string, SessionRow>): void {
    const before = this.#rows;
    this.#rows = rows;
    this.#pending ??= new Set(this.#hub.approvals.peek().map((one) => one.id));
    if (!before) return;
    for (const row of rows.values()) {
      const was = before.get(row.id)?.status;
      if (was !== undefined && was !== row.status) this.#moved(row, was);
    }
    for (const id of before.keys()) if (!rows.has(id)) this.#forget(id);
  }

  #moved({ id, status }: SessionRow, was: string): void {
    if (was === "waiting_for_input") this.#settle(`question:${id}`);
    if (WORKING.has(status)) this.#forget(id);
    else if (status === "waiting_for_input") {
      // a question that is part of an approval is announced with that
      if (this.#hub.approvals.peek().some((one) => one.sessionId === id && isQuestionRequest(one.request))) return;
      this.#tell({ key: `question:${id}`, sessionId: id, title: "A question for you", body: "" });
    } else if (ENDED[status] && (WORKING.has(was) || WAITING.has(was))) {
      this.#tell({ key: `ended:${id}`, sessionId: id, title: ENDED[status], body: "" });
    }
  }

  #forget(id: string): void {
    for (const kind of ["question", "ended"]) {
      this.#claimed.delete(`${kind}:${id}`);
      this.#settle(`${kind}:${id}`);
    }
  }

  // -- one thing --

  #tell(note: Note): void {
    if (this.#claimed.has(note.key)) return;
    if (isVisible.peek()) this.#claim(note.key);
    else if (notify.peek() && canNotify() && Notification.permission === "granted") this.#soon(note);
  }

  #soon(note: Note): void {
    const timer = setTimeout(
      () => {
        this.#timers.delete(note.key);
        this.#claim(note.key);
        this.#show(note);
      },
      CLAIM * (0.5 + Math.random() / 2),
    );
    this.#timers.set(note.key, timer);
  }

  #claim(key: string): void {
    this.#claimed.add(key);
    this.#channel?.postMessage(key);
  }

  #heard(key: string): void {
    this.#claimed.add(key);
    this.#drop(key);
  }

  #drop(key: string): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }

  #show({ key, sessionId, title, body }: Note): void {
    const row = this.#hub.row(sessionId);
    const name = visible(shortenText(row ? nameOf(row) : sessionId, LONGEST_NAME));
    const options = { tag: `pilothouse:${key}`, body: body ? `${name}\n${body}` : name, data: { sessionId } };
    try {
      const made = new Notification(title, options);
      made.onclick = () => {
        window.focus();
        go({ view: "session", id: sessionId });
        made.close();
      };
      this.#shown.set(key, made);
    } catch {
      // a phone shows them only by the service worker, which leads to `data.sessionId` when one is touched
      this.#byWorker(key, title, options).catch(() => {}); // the leave to show them may just have been taken back
    }
  }

  async #byWorker(key: string, title: string, options: NotificationOptions & { tag: string }): Promise<void> {
    const worker = await navigator.serviceWorker?.getRegistration();
    if (!worker) return;
    let settled = false;
    const close = () => {
      settled = true;
      void worker.getNotifications({ tag: options.tag }).then((all) => all.forEach((one) => one.close()));
    };
    this.#shown.set(key, { close });
    await worker.showNotification(title, options);
    if (settled) close(); // while it was being shown
  }

  #settle(key: string): void {
    this.#drop(key);
    this.#shown.get(key)?.close();
    this.#shown.delete(key);
  }
}
