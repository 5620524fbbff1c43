/**
 * Where the keys go while a card waits.
 *
 * Who has sent a prompt still has the focus in the field, where `a` is a letter. A card that comes while the field is
 * empty and idle takes it over, unless it is risky; letters that come in its first moments were meant for the field, and
 * go there. Esc in the field does the same whenever somebody wants it. Once nothing waits, the field has it back.
 */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { isIdle, isTyping } from "../../app/shortcuts";
import { isTouch } from "../composer/keys";

/** Milliseconds in which somebody who began to type meant the field. */
const GRACE = 1500;
const FIELD = ".composer-field";

/** Leave the field for the card that waits. False where none does. */
export function leaveForCard(): boolean {
  const card = document.querySelector<HTMLElement>(".asks > .ask");
  card?.focus({ preventScroll: true });
  return card !== null && document.activeElement === card;
}

/** Whether keys decide: now, in a moment, or not while somebody is in a field. */
export type CardKeys = "live" | "soon" | "off";

/** Take the focus over from a field that nobody uses. */
export function useCardKeys(card: RefObject<HTMLElement | null>, willing: boolean): CardKeys {
  const [taken, setTaken] = useState(false);
  useLayoutEffect(() => {
    const [field, own] = [document.activeElement, card.current];
    if (!willing || !own || !(field instanceof HTMLTextAreaElement) || !field.matches(FIELD)) return undefined;
    if (field.value || !isIdle(field) || isTouch()) return undefined;
    own.focus({ preventScroll: true });
    setTaken(true);
    // the letter is typed into what has the focus when its key is dealt with
    const giveBack = (event: KeyboardEvent) => {
      if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return;
      event.stopPropagation();
      field.focus();
    };
    // who goes elsewhere has seen it
    const end = () => {
      clearTimeout(timer);
      own.removeEventListener("keydown", giveBack);
      own.removeEventListener("focusout", end);
      setTaken(false);
    };
    const timer = setTimeout(end, GRACE);
    own.addEventListener("keydown", giveBack);
    own.addEventListener("focusout", end);
    return end;
  }, []);
  return useTyping() ? "off" : taken ? "soon" : "live";
}

/** Whether somebody is in a field. */
function useTyping(): boolean {
  const [typing, setTyping] = useState(() => isTyping(document.activeElement));
  useEffect(() => {
    const look = () => setTyping(isTyping(document.activeElement));
    look();
    // where the focus goes is known a moment after it left
    const later = () => queueMicrotask(look);
    document.addEventListener("focusin", look);
    document.addEventListener("focusout", later);
    return () => {
      document.removeEventListener("focusin", look);
      document.removeEventListener("focusout", later);
    };
  }, []);
  return typing;
}

/** The field that somebody left for what waits has the focus again when nothing does. */
export function useWayBack(waits: boolean) {
  const left = useRef<HTMLElement | null>(null);
  useLayoutEffect(() => {
    if (waits || !left.current) return;
    if (document.activeElement === document.body && !isTouch()) left.current.focus({ preventScroll: true });
    left.current = null;
  }, [waits]);
  return ({ relatedTarget }: FocusEvent) => {
    if (relatedTarget instanceof HTMLElement && relatedTarget.matches(FIELD)) left.current = relatedTarget;
  };
}
