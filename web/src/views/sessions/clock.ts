/** The time, as exact as lists need it: views that read it are drawn again twice a minute. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const EVERY = 30_000;
export const now = signal(Date.now());
let watchers = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** Let it run while the view is there. */
export function useClock(): void {
  useEffect(() => {
    now.value = Date.now();
    if (watchers++ === 0) timer = setInterval(() => (now.value = Date.now()), EVERY);
    return () => {
      if (--watchers === 0) clearInterval(timer);
    };
  }, []);
}
