/** Short words that need no answer: shown for a while, then gone. */
import { signal } from "@preact/signals";
import { words } from "./hub";

export interface Toast {
  id: number;
  kind: "info" | "ok" | "failed";
  text: string;
}

const SECONDS = { info: 4, ok: 3, failed: 8 };
let last = 0;

export const toasts = signal<readonly Toast[]>([]);

export function toast(text: string, kind: Toast["kind"] = "info"): void {
  const id = ++last;
  toasts.value = [...toasts.value.slice(-3), { id, kind, text }];
  setTimeout(() => dismiss(id), SECONDS[kind] * 1000);
}

export const dismiss = (id: number): void => {
  toasts.value = toasts.value.filter((one) => one.id !== id);
};

/** Do it, and say so when it fails. */
export async function attempt(what: string, act: () => Promise<unknown>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    toast(`${what}: ${words(error)}`, "failed");
    return false;
  }
}
