/** How much of what scrolls is still to come, in lines: who decides must see that there is more. */
import { useEffect, useRef, useState } from "preact/hooks";

/** Pixels of a line of code; less than half of one is nobody's loss. */
const LINE = 20;

export function useBelow() {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [below, setBelow] = useState(0);
  useEffect(() => {
    const scroller = box.current;
    if (!scroller || !content.current || typeof ResizeObserver === "undefined") return undefined;
    const look = () =>
      setBelow(Math.round((scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop) / LINE));
    const observer = new ResizeObserver(look);
    observer.observe(scroller);
    observer.observe(content.current);
    scroller.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", look);
    };
  }, []);
  const go = () => box.current?.scrollBy({ top: box.current.clientHeight - 2 * LINE, behavior: "smooth" });
  return { box, content, below, go };
}
