/** What this browser's user prefers. */
import { effect } from "@preact/signals";
import { kept } from "./stored";

export type Theme = "system" | "light" | "dark";

export const theme = kept<Theme>("theme", "system");
/** Notifications while the page is open. */
export const notify = kept<boolean>("notify", false);

/** Let the page look as it is preferred, now and later. */
export function wearTheme(root: HTMLElement): () => void {
  return effect(() => {
    if (theme.value === "system") delete root.dataset["theme"];
    else root.dataset["theme"] = theme.value;
  });
}
