/** Whether an element has been near the screen: what is far away need not be drawn yet. */
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

type Callback = () => void;

const waiting = new Map<Element, Callback>();
let observer: IntersectionObserver | undefined;

/** One observer for the page: a long diff has hundreds of places to watch. */
function watch(element: Element, callback: Callback): Callback {
  observer ??= new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) waiting.get(target)?.();
    },
    { rootMargin: "800px 0px" },
  );
  waiting.set(element, callback);
  observer.observe(element);
  return () => {
    waiting.delete(element);
    observer?.unobserve(element);
  };
}

/** False until the element comes near; then true for good. Where nothing can be watched, true at once. */
export function useNear(ref: RefObject<Element | null>, already = false): boolean {
  const [near, setNear] = useState(already || typeof IntersectionObserver === "undefined");
  useEffect(() => {
    if (!near && ref.current) return watch(ref.current, () => setNear(true));
    return undefined;
  }, [near]);
  return near;
}
