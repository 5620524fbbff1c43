/**
 * HTML that an agent wrote into its Markdown, made harmless. Few do, so what cleans it is fetched when the first one
 * does; until it is there the HTML is shown as text, and after that everything is read anew.
 */
import { signal } from "@preact/signals";
import { escapeHtml } from "../../text/markdown/slices";
import type { Sanitise } from "../../text/markdown/stream";

let cleaner: Sanitise | null = null;
let loading = false;

/** Counts up when texts that were read before would be read otherwise now. */
export const readings = signal(0);

export const clean: Sanitise = (html) => {
  if (cleaner) return cleaner(html);
  if (!loading) void load();
  return `<p>${escapeHtml(html)}</p>`;
};

async function load(): Promise<void> {
  loading = true;
  try {
    const { sanitiser } = await import("../../text/markdown/sanitise");
    cleaner = sanitiser(window as never);
    readings.value += 1;
  } catch {
    loading = false; // no hub at the moment; the next text tries again
  }
}
