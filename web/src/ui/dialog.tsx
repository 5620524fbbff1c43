/** A dialog: the browser's own, so that focus stays within and Esc closes it. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icon";

interface Props {
  title: string;
  close(): void;
  children: ComponentChildren;
  /** `sheet` comes from below on a phone; `palette` stands high and has no head. */
  kind?: "box" | "sheet" | "palette";
}

export function Dialog({ title, close, children, kind = "box" }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  // no key may reach the page under it once it can be seen
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const outside = (event: MouseEvent) => {
    if (event.target === ref.current) close();
  };
  const cancel = (event: Event) => {
    event.preventDefault();
    close();
  };
  return (
    <dialog ref={ref} class={`dialog ${kind}`} aria-label={title} onMouseDown={outside} onCancel={cancel}>
      <div class="dialog-body">
        {kind !== "palette" && (
          <header class="dialog-head">
            <h2>{title}</h2>
            <button type="button" class="button quiet icon" aria-label="Close" onClick={close}>
              <Icon name="cross" />
            </button>
          </header>
        )}
        {children}
      </div>
    </dialog>
  );
}
