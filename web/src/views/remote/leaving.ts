/** Leaving the hub: this browser is let in no more, and keeps nothing of it. */
import type { Hub } from "../../app/hub";
import { forget } from "../../app/offline";
import { attempt } from "../../app/toasts";

export async function logOut(hub: Hub): Promise<void> {
  if (!(await attempt("Could not log out", () => hub.api.post("logout")))) return;
  await forget().catch(() => {});
  try {
    // drafts and what was read; how the page looks is no secret, but belongs to who is gone as well
    for (const key of Object.keys(localStorage)) if (key.startsWith("pilothouse:")) localStorage.removeItem(key);
  } catch {
    // where nothing can be kept there is nothing to remove
  }
  location.hash = "";
  location.reload();
}
