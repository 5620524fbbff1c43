/** Leaving the hub: this browser is let in no more, and keeps nothing of it. */
import type { Hub } from "../../app/hub";
import { forget } from "../../app/offline";
import { wipe } from "../../app/stored";
import { attempt } from "../../app/toasts";

export async function logOut(hub: Hub): Promise<void> {
  if (!(await attempt("Could not log out", () => hub.api.post("logout")))) return;
  // drafts and what was read; how the page looks is no secret, but belongs to who is gone as well
  wipe();
  await forget();
  location.hash = "";
  location.reload();
}
