/** The name of a device, and a field for another one. */
import { useEffect, useRef, useState } from "preact/hooks";
import { path } from "../../app/api";
import { useHub } from "../../app/context";
import { isComposing } from "../../app/shortcuts";
import { attempt } from "../../app/toasts";
import { Icon } from "../../ui/icon";

interface Props {
  device: { id: string; name: string };
  own: boolean;
  changed(): void;
}

export function DeviceName({ device, own, changed }: Props) {
  const hub = useHub();
  const [editing, setEditing] = useState(false);
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), [editing]);
  if (!editing) {
    return (
      <p class="device-name">
        <bdi class="cut">{device.name}</bdi>
        {own && <span class="chip work">this device</span>}
        <button
          type="button"
          class="button quiet icon"
          aria-label={`Rename ${device.name}`}
          title="Rename"
          onClick={() => setEditing(true)}
        >
          <Icon name="edit" size={14} />
        </button>
      </p>
    );
  }
  const save = async () => {
    const name = field.current?.value.trim() ?? "";
    if (!name || name === device.name) return setEditing(false);
    setBusy(true);
    const done = await attempt("Could not rename it", () =>
      hub.api.call("PATCH", path("devices", device.id), { name }),
    );
    setBusy(false);
    if (!done) return;
    setEditing(false);
    changed();
  };
  const keys = (event: KeyboardEvent) => {
    if (isComposing(event)) return;
    if (event.key === "Enter") void save();
    else if (event.key === "Escape") setEditing(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <p class="device-name">
      <input
        ref={field}
        class="field"
        aria-label="Name of the device"
        defaultValue={device.name}
        maxLength={64}
        disabled={busy}
        onKeyDown={keys}
      />
      <button type="button" class="button icon primary" aria-label="Save" disabled={busy} onClick={() => void save()}>
        <Icon name="check" />
      </button>
    </p>
  );
}
