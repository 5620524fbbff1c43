/**
 * Colours for what somebody looks at: code gets them once its place has been on the screen for a moment. What rushes by
 * stays plain until it is seen again.
 */
import { colourWithin } from "./within";

/** Milliseconds on the screen after which something is looked at. */
const MOMENT = 400;

/** Places with code to colour that are on the screen, and since when. */
const seen = new Map<Element, number>();
let timer: ReturnType<typeof setTimeout> | undefined;
let observer: IntersectionObserver | undefined;

/** Colour the code below `place` when it was looked at; at once where nobody can tell. */
export function colourWhenSeen(place: Element): void {
  if (typeof IntersectionObserver === "undefined") {
    void colourWithin(place);
    return;
  }
  observer ??= new IntersectionObserver(noticed);
  if (!seen.has(place)) observer.observe(place);
}

export function colourNoMore(place: Element): void {
  observer?.unobserve(place);
  seen.delete(place);
}

function noticed(entries: IntersectionObserverEntry[]): void {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) seen.delete(target);
    else if (!seen.has(target)) seen.set(target, performance.now());
  }
  plan();
}

function plan(): void {
  if (seen.size) timer ??= setTimeout(look, MOMENT);
}

function look(): void {
  timer = undefined;
  const now = performance.now();
  for (const [place, since] of [...seen]) {
    if (now - since < MOMENT - 1) continue;
    colourNoMore(place);
    void colourWithin(place);
  }
  plan();
}
