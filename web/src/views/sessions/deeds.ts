/** What can be done to a session from a list: for the menu of a row and for the palette. */
import type { Hub } from "../../app/hub";
import { path } from "../../app/api";
import { cancel } from "../../app/commands";
import { go, route } from "../../app/route";
import { nameOf, type SessionRow, wordOf } from "../../app/rows";
import { attempt, toast } from "../../app/toasts";
import { copyText } from "../../ui/copy";

export const rename = (hub: Hub, id: string, title: string): Promise<boolean> =>
  attempt("Could not rename", () => hub.api.call("PATCH", path("sessions", id), { title: title.trim() || null }));

export async function setArchived(hub: Hub, row: SessionRow, archived: boolean): Promise<boolean> {
  const done = await attempt(archived ? "Could not archive" : "Could not bring back", () =>
    hub.api.call("PATCH", path("sessions", row.id), { archived }),
  );
  if (done) toast(`“${nameOf(row)}” is ${archived ? "archived" : "back in the list"}`, "ok");
  return done;
}

export const stopTurn = (hub: Hub, id: string): Promise<boolean> => attempt("Could not stop", () => cancel(hub, id));

export async function remove(hub: Hub, id: string): Promise<boolean> {
  const done = await attempt("Could not delete", () => hub.api.call("DELETE", path("sessions", id)));
  const at = route.peek();
  if (done && "id" in at && at.id === id) go({ view: "sessions" });
  return done;
}

export async function copyId(id: string): Promise<void> {
  const done = await copyText(id);
  toast(done ? "Id copied" : `Could not copy; the id is ${id}`, done ? "ok" : "failed");
}

/** Whether there is a turn that can be stopped. */
export const isRunning = (row: SessionRow): boolean =>
  ["working", "waiting for you"].includes(wordOf(row.status, row.pendingApprovals));
