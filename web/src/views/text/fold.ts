/** What the reader folded or unfolded, kept as long as the page knows the thing, also while it is not drawn. */
import { useState } from "preact/hooks";

const chosen = new WeakMap<object, boolean>();

/** Whether it is open: as the reader chose, else as it opens by itself. */
export function useFold(of: object, byItself = false): [open: boolean, toggle: () => void] {
  const [, again] = useState(0);
  const open = chosen.get(of) ?? byItself;
  const toggle = () => {
    chosen.set(of, !open);
    again((count) => count + 1);
  };
  return [open, toggle];
}
