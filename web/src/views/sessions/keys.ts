/** Moving through the list by keys: j and k from anywhere, arrows within it. */
import { useEffect } from "preact/hooks";
import { useShortcuts } from "../../app/shortcuts";

export interface Scroll {
  current: HTMLElement | null;
}

export function useListKeys(list: Scroll): void {
  const there = () => list.current !== null && list.current.offsetParent !== null;
  useShortcuts([
    { keys: "j", label: "Next session", group: "Sessions", when: there, run: () => step(list.current, 1) },
    { keys: "k", label: "Previous session", group: "Sessions", when: there, run: () => step(list.current, -1) },
  ]);
  useEffect(() => {
    // the open session is in view when the list appears; the page itself never scrolls
    const current = list.current?.querySelector<HTMLElement>(".session-row.current");
    if (current && list.current) list.current.scrollTop = current.offsetTop - list.current.clientHeight / 2;
  }, []);
}

export function arrows(event: KeyboardEvent, list: HTMLElement | null): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !(event.target as HTMLElement).matches("a")) return;
  event.preventDefault();
  step(list, by);
}

const LINKS = "a.session-link, a.session-snippet";

export const focusFirst = (list: HTMLElement | null): void => list?.querySelector<HTMLElement>(LINKS)?.focus();

/** What Enter in the search means: the first that was found. */
export const openFirst = (list: HTMLElement | null): void => list?.querySelector<HTMLElement>(LINKS)?.click();

/** Move to the next link, from the one that has the focus or else from the open session. */
function step(list: HTMLElement | null, by: number): void {
  const links = [...(list?.querySelectorAll<HTMLElement>(LINKS) ?? [])];
  const focused = links.indexOf(document.activeElement as HTMLElement);
  const from = focused >= 0 ? focused : links.findIndex((link) => link.getAttribute("aria-current"));
  const to = from < 0 ? (by > 0 ? 0 : links.length - 1) : from + by;
  links[Math.max(0, Math.min(to, links.length - 1))]?.focus();
}
