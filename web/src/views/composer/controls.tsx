/** Mode, model and other options of the agent. A choice is shown as on its way until the session says that it is so. */
import { useEffect, useState } from "preact/hooks";
import { useHub, useOpen } from "../../app/context";
import { attempt } from "../../app/toasts";
import { type Choosable, choosable } from "./settings";

export function Controls() {
  const open = useOpen();
  void open.head.value;
  const session = open.session.value;
  return (
    <div class="composer-controls">
      {(session ? choosable(session.fields) : []).map((one) => (
        <Control key={one.id} what={one} />
      ))}
    </div>
  );
}

/** Milliseconds after the hub's answer in which the session should tell of the change. */
const LINGER = 3000;

function Control({ what }: { what: Choosable }) {
  const hub = useHub();
  const open = useOpen();
  const [wanted, setWanted] = useState<string | boolean | null>(null);
  useEffect(() => setWanted(null), [what.value]);
  const choose = async (value: string | boolean) => {
    setWanted(value);
    const done = await attempt(`${what.name} stays as it was`, () => hub.command(open.id, what.command(value)));
    setTimeout(() => setWanted((now) => (now === value ? null : now)), done ? LINGER : 0);
  };
  const pending = wanted !== null && wanted !== what.value;
  const value = pending ? wanted : what.value;
  const chosen = what.options.find((option) => option.value === value);
  const shown = chosen?.name ?? (String(value) || what.name);
  const told = {
    "aria-label": what.name,
    "aria-busy": pending,
    title: what.options.length ? `${what.name}: ${shown}\n${what.about}`.trim() : what.about || what.name,
    disabled: pending || !hub.may("prompt"),
  };
  if (!what.options.length) {
    return (
      <label class={`composer-control ${pending ? "pending" : ""}`}>
        <input
          type="checkbox"
          {...told}
          checked={value === true}
          onChange={(event) => void choose(event.currentTarget.checked)}
        />
        {what.name}
      </label>
    );
  }
  return (
    <span class={`composer-control ${pending ? "pending" : ""}`}>
      <span class="composer-chosen cut" aria-hidden="true">
        {shown}
      </span>
      <select {...told} value={String(value)} onChange={(event) => void choose(event.currentTarget.value)}>
        {!chosen && <option value={String(value)}>{shown}</option>}
        {what.options.map((option) => (
          <option key={option.value} value={option.value} title={option.about}>
            {option.group ? `${option.group}: ${option.name}` : option.name}
          </option>
        ))}
      </select>
    </span>
  );
}
