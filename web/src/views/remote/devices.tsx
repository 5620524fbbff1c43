/** Who may come in: devices that are paired, a new one, and what is answered without asking. */
import { useEffect, useState } from "preact/hooks";
import { path } from "../../app/api";
import { useHub } from "../../app/context";
import { words } from "../../app/hub";
import { attempt, toast } from "../../app/toasts";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { moment } from "../../ui/time";
import { Invite } from "./invite";
import { logOut } from "./leaving";
import { DeviceName } from "./name";
import { iconOf, since } from "./naming";
import { Rules } from "./rules";
import { rightsOf } from "./scopes";

export interface Device {
  id: string;
  name: string;
  scopes: string[];
  created: string;
  lastSeen?: string | null;
  revoked?: string | null;
  connections: number;
}

export function Devices() {
  const hub = useHub();
  return (
    <div class="access">
      <Me />
      {hub.may("admin") && <Paired />}
      {hub.me.value && !hub.may("admin") && (
        <p class="muted small">Only a device that may manage the hub sees and pairs others.</p>
      )}
      <Rules />
    </div>
  );
}

function Me() {
  const hub = useHub();
  const [asks, setAsks] = useState(false);
  const me = hub.me.value;
  return (
    <section class="card device me" aria-label="This browser">
      <Icon name="laptop" size={20} />
      <div class="device-words">
        <p>
          You are <b>{me?.name ?? "…"}</b>
        </p>
        {me && <p class="small muted">may {rightsOf(me.scopes)}</p>}
      </div>
      <button type="button" class="button" onClick={() => setAsks(true)}>
        Log out
      </button>
      {asks && (
        <Dialog title="Log out?" close={() => setAsks(false)}>
          <p class="dialog-words">
            This browser forgets what it has kept of the hub. To come back you need a new link:{" "}
            <code>pilothouse serve</code> prints one on the host.
          </p>
          <footer class="dialog-foot">
            <button type="button" class="button" onClick={() => setAsks(false)}>
              Stay
            </button>
            <button type="button" class="button danger" onClick={() => void logOut(hub)}>
              Log out
            </button>
          </footer>
        </Dialog>
      )}
    </section>
  );
}

function Paired() {
  const hub = useHub();
  const [devices, setDevices] = useState<Device[] | null>(null);
  const [own, setOwn] = useState<string | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [doomed, setDoomed] = useState<Device | null>(null);
  const load = async () => {
    try {
      const found = await hub.api.get<{ devices: Device[] }>("devices");
      setDevices(found.devices.filter((one) => !one.revoked));
      setTrouble(null);
    } catch (error) {
      setTrouble(words(error));
    }
  };
  const live = hub.status.value.phase === "live";
  useEffect(() => {
    if (devices && !live) return;
    void load();
    hub.api.get<{ deviceId?: string | null }>("whoami").then(
      (me) => setOwn(me.deviceId ?? null),
      () => {},
    );
  }, [live]);
  return (
    <>
      <Invite paired={() => void load()} />
      <section aria-label="Paired devices">
        <h2 class="page-section">Paired</h2>
        {trouble && (
          <p class="new-trouble bad" role="alert">
            The devices could not be listed: {trouble}.{" "}
            <button type="button" class="button" onClick={() => void load()}>
              Try again
            </button>
          </p>
        )}
        {!devices && !trouble && <p class="new-bone" role="status" aria-label="Loading the devices" />}
        {devices && !devices.length && (
          <p class="muted">No device is paired. Phones and other computers show up here.</p>
        )}
        <ul class="devices">
          {devices?.map((device) => (
            <Row
              key={device.id}
              device={device}
              own={device.id === own}
              changed={() => void load()}
              revoke={() => setDoomed(device)}
            />
          ))}
        </ul>
      </section>
      {doomed && (
        <Revoke
          device={doomed}
          own={doomed.id === own}
          close={() => setDoomed(null)}
          done={() => setDevices((now) => now && now.filter((one) => one.id !== doomed.id))}
        />
      )}
    </>
  );
}

interface RowProps {
  device: Device;
  own: boolean;
  changed(): void;
  revoke(): void;
}

function Row({ device, own, changed, revoke }: RowProps) {
  return (
    <li class="card device">
      <Icon name={iconOf(device.name)} size={20} />
      <div class="device-words">
        <DeviceName device={device} own={own} changed={changed} />
        <p class="small muted">
          may {rightsOf(device.scopes)} ·{" "}
          {device.connections > 0 ? (
            <span class="device-here">connected</span>
          ) : device.lastSeen ? (
            <time dateTime={device.lastSeen} title={moment(device.lastSeen)}>
              seen {since(device.lastSeen)}
            </time>
          ) : (
            "not seen yet"
          )}
        </p>
      </div>
      <button type="button" class="button danger" onClick={revoke}>
        Revoke
      </button>
    </li>
  );
}

interface RevokeProps {
  device: Device;
  own: boolean;
  close(): void;
  done(): void;
}

function Revoke({ device, own, close, done }: RevokeProps) {
  const hub = useHub();
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    const gone = await attempt("Could not revoke it", () => hub.api.call("DELETE", path("devices", device.id)));
    setBusy(false);
    if (!gone) return;
    toast(`${device.name} is sent away`, "ok");
    done();
    close();
  };
  return (
    <Dialog title="Revoke this device?" close={close}>
      <p class="dialog-words">
        <b>
          <bdi>{device.name}</bdi>
        </b>{" "}
        is cut off at once and has to be paired again to come back.{own && " It is the one that you are using."}
      </p>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={close}>
          Keep it
        </button>
        <button type="button" class="button danger" disabled={busy} onClick={() => void press()}>
          {busy ? "Revoking…" : "Revoke"}
        </button>
      </footer>
    </Dialog>
  );
}
