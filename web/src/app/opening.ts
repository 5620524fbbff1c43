/** The session that the page shows, if it shows one. Whoever shows it says so here. */
import { signal } from "@preact/signals";
import type { OpenSession } from "./open";

export const opened = signal<OpenSession | null>(null);
