/** What this browser's user prefers, and which version the hub is. */
import { useEffect, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { canNotify, switchNotify } from "../../app/notifying";
import { hrefOf } from "../../app/route";
import { notify, type Theme, theme } from "../../app/settings";
import { Dialog } from "../../ui/dialog";
import { Icon, type IconName } from "../../ui/icon";

const THEMES: readonly [Theme, string, IconName][] = [
  ["system", "System", "laptop"],
  ["light", "Light", "sun"],
  ["dark", "Dark", "moon"],
];

export function Settings({ close }: { close(): void }) {
  return (
    <Dialog title="Settings" kind="sheet" close={close}>
      <div class="settings">
        <fieldset class="settings-row">
          <legend>Theme</legend>
          <div class="settings-themes">
            {THEMES.map(([name, label, icon]) => (
              <label key={name} class="settings-theme">
                <input type="radio" name="theme" checked={theme.value === name} onChange={() => (theme.value = name)} />
                <span>
                  <Icon name={icon} />
                  {label}
                </span>
              </label>
            ))}
          </div>
        </fieldset>
        <Notifications />
        <p class="settings-row">
          <a class="button" href={hrefOf({ view: "devices" })} onClick={close}>
            <Icon name="phone" />
            Devices and standing answers
          </a>
        </p>
        <About />
      </div>
    </Dialog>
  );
}

function Notifications() {
  const [refused, setRefused] = useState(false);
  const able = canNotify();
  const change = async (on: boolean) => setRefused(!(await switchNotify(on)));
  return (
    <div class="settings-row">
      <label class="settings-switch">
        <span>
          Notifications
          <span class="small muted">
            When an agent asks, finishes or fails while this page is open but not in view.
          </span>
        </span>
        <input
          type="checkbox"
          role="switch"
          checked={notify.value && able && Notification.permission === "granted"}
          disabled={!able}
          onChange={(event) => void change(event.currentTarget.checked)}
        />
      </label>
      {!able && (
        <p class="small muted">
          {globalThis.isSecureContext
            ? "This browser has none."
            : "Browsers allow them only over HTTPS or on the host itself."}
        </p>
      )}
      {refused && able && (
        <p class="small new-trouble bad" role="alert">
          This browser forbids them for this page. Allow them in its settings for the site, then switch them on here.
        </p>
      )}
    </div>
  );
}

function About() {
  const hub = useHub();
  const [version, setVersion] = useState<string | null>(null);
  useEffect(() => {
    hub.api.get<{ version: string }>("healthz").then(
      (health) => setVersion(health.version),
      () => {},
    );
  }, []);
  const { phase, lane } = hub.status.value;
  return (
    <p class="settings-row small muted">
      Pilothouse {version ?? "…"}
      {hub.me.value && ` · you are ${hub.me.value.name}`}
      {phase === "live" && ` · connected by ${lane === "socket" ? "WebSocket" : "long polling"}`}
    </p>
  );
}
