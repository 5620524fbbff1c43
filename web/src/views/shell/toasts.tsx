import { dismiss, toasts } from "../../app/toasts";
import { Icon, type IconName } from "../../ui/icon";

const ICONS: Record<"info" | "ok" | "failed", IconName> = { info: "info", ok: "check", failed: "warning" };

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, kind, text }) => (
        <div class={`toast ${kind}`} key={id}>
          <Icon name={ICONS[kind]} />
          <span>{text}</span>
          <button type="button" class="button quiet icon" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="cross" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}
