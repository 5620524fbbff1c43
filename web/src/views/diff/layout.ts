/** How diffs are laid out: as this browser's user chose, else as there is room. */
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { kept } from "../../app/stored";

export type Layout = "unified" | "split";

/** What was chosen; "auto" until somebody does. */
export const chosen = kept<Layout | "auto">("diff-layout", "auto");
export const wrapped = kept<boolean>("diff-wrap", true);

/** Pixels from which two columns are the better choice, and from which they are one at all. */
const WIDE = 720;
const POSSIBLE = 480;

export interface Room {
  readonly layout: Layout;
  /** Whether there is a choice. */
  readonly choice: boolean;
}

export function roomOf(width: number, choice: Layout | "auto"): Room {
  if (width < POSSIBLE) return { layout: "unified", choice: false };
  const fitting = width < WIDE ? "unified" : "split";
  return { layout: choice === "auto" ? fitting : choice, choice: true };
}

/** A class says it, and no container query: browsers were seen to leave such a container empty after it had changed. */
export const isNarrow = (width: number | null): boolean => width !== null && width < POSSIBLE;

/** The width of an element; null until it is in the page, so that nothing is laid out twice. */
export function useWidth(ref: RefObject<HTMLElement | null>): number | null {
  const [width, setWidth] = useState<number | null>(null);
  useLayoutEffect(() => {
    const element = ref.current;
    setWidth(element?.clientWidth ?? 0);
    if (!element || typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setWidth(Math.round(entry.contentRect.width));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}
