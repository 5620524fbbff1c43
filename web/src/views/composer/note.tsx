/** A line above the field that says what is the matter. */
import type { ComponentChildren } from "preact";
import { Icon } from "../../ui/icon";

interface Props {
  kind?: "bad";
  close?(): void;
  children: ComponentChildren;
}

export function Note({ kind, close, children }: Props) {
  return (
    <div class={`composer-note small ${kind ?? ""}`} role={kind === "bad" ? "alert" : "status"}>
      <span>{children}</span>
      {close && (
        <button type="button" class="button quiet icon" aria-label="Close" onClick={close}>
          <Icon name="cross" size={14} />
        </button>
      )}
    </div>
  );
}
