/** The host's side of pairing: what the device may do, then a QR code for it and a code that is only shown here. */
import { useEffect, useState } from "preact/hooks";
import { path, Refused } from "../../app/api";
import { useHub } from "../../app/context";
import { type Scope, words } from "../../app/hub";
import { Copy } from "../../ui/copy";
import { Icon } from "../../ui/icon";
import { clock } from "../../ui/time";
import { spaced, triesLeft } from "./naming";
import { Qr } from "./qr";
import { MAY, SCOPES } from "./scopes";

interface Pairing {
  id: string;
  code: string;
  url: string;
  qr?: string[];
  expiresIn: number;
}

interface Info {
  state: "pending" | "used" | "withdrawn" | "locked" | "expired";
  expiresIn: number;
  triesLeft: number;
  /** The device that came, once it is stored: that is a moment after the code was used. */
  deviceId?: string | null;
}

const EVERY = 1500;

/** `paired`: a device has come, so the list has one more. */
export function Invite({ paired }: { paired(): void }) {
  const hub = useHub();
  const [scopes, setScopes] = useState<readonly Scope[]>(["read", "prompt", "approve"]);
  const [pairing, setPairing] = useState<Pairing | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const begin = async () => {
    setBusy(true);
    try {
      setPairing(await hub.api.post<Pairing>("pairings", { scopes: [...scopes] }));
      setTrouble(null);
    } catch (error) {
      setTrouble(words(error));
    }
    setBusy(false);
  };
  if (pairing) return <Waiting key={pairing.id} pairing={pairing} paired={paired} close={() => setPairing(null)} />;
  const toggle = (scope: Scope) =>
    setScopes(SCOPES.filter((one) => (one === scope ? !scopes.includes(one) : scopes.includes(one))));
  return (
    <div class="card invite">
      <h2>Pair a device</h2>
      <p class="small muted">It will be able to:</p>
      <div class="invite-scopes">
        {SCOPES.map((scope) => (
          <label key={scope} class="invite-scope">
            <input
              type="checkbox"
              checked={scopes.includes(scope)}
              disabled={scope === "read"}
              onChange={() => toggle(scope)}
            />
            {MAY[scope][1]}
          </label>
        ))}
      </div>
      {trouble && (
        <p class="new-trouble bad small" role="alert">
          {trouble}
        </p>
      )}
      <button type="button" class="button primary" disabled={busy} onClick={() => void begin()}>
        <Icon name="phone" />
        {busy ? "Making the code…" : "Show the QR code"}
      </button>
    </div>
  );
}

function Waiting({ pairing, paired, close }: { pairing: Pairing; paired(): void; close(): void }) {
  const { info, left } = useInfo(pairing, paired);
  if (info.state !== "pending") return <Over info={info} close={close} />;
  return (
    <div class="card invite">
      <div class="invite-code">
        {pairing.qr && <Qr rows={pairing.qr} label="QR code with the link for the device" />}
        <div class="invite-words">
          <h2>Scan this with the device</h2>
          <p class="small muted">or open this link there:</p>
          <p class="invite-link">
            <code class="cut">{pairing.url}</code>
            <Copy text={pairing.url} label="Copy the link" />
          </p>
          <p class="small muted">Then type this code on the device:</p>
          <p class="invite-digits" aria-label={`Code ${[...pairing.code].join(" ")}`}>
            {spaced(pairing.code)}
          </p>
          <p class="small muted" role="timer">
            Works for {clock(left * 1000)}
            {info.triesLeft < 5 && ` · a wrong code was typed. ${triesLeft(info.triesLeft)}`}
          </p>
          {/^https?:\/\/(localhost|127\.|\[::1\])/.test(pairing.url) && (
            <p class="small new-trouble">
              This address only works on this machine. See <code>pilothouse serve --help</code> for how other devices
              can reach the hub.
            </p>
          )}
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
        </div>
      </div>
    </div>
  );
}

const ENDS: Readonly<Record<string, string>> = {
  expired: "Nobody came in time.",
  locked: "Too many wrong codes were typed, so this code works no more.",
  withdrawn: "It was withdrawn.",
};

function Over({ info, close }: { info: Info; close(): void }) {
  const used = info.state === "used";
  return (
    <div class="card invite" role="status">
      <h2 class={used ? "invite-ok" : ""}>
        {used && <Icon name="check" />}
        {used ? "Paired!" : ENDS[info.state]}
      </h2>
      <p class="muted small">{used ? "The device is in the list below." : "A new code can be made at any time."}</p>
      <button type="button" class="button" onClick={close}>
        {used ? "Pair another one" : "Begin again"}
      </button>
    </div>
  );
}

/** What became of it, asked for while it is on the screen; who goes away withdraws it. */
function useInfo(pairing: Pairing, paired: () => void): { info: Info; left: number } {
  const hub = useHub();
  const [info, setInfo] = useState<Info>({ state: "pending", expiresIn: pairing.expiresIn, triesLeft: 5 });
  const [ends] = useState(() => Date.now() + pairing.expiresIn * 1000);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const place = path("pairings", pairing.id);
    let pending = true;
    const look = async () => {
      setNow(Date.now());
      try {
        const found = await hub.api.get<Info>(place);
        if (!pending || (found.state === "used" && !found.deviceId)) return;
        pending = found.state === "pending";
        setInfo(found);
        if (found.state === "used") paired();
      } catch (error) {
        // a hub that started again knows no tickets
        if (!pending || !(error instanceof Refused) || error.status !== 404) return;
        pending = false;
        setInfo({ state: "expired", expiresIn: 0, triesLeft: 0 });
      }
    };
    const asking = setInterval(() => pending && void look(), EVERY);
    const ticking = setInterval(() => setNow(Date.now()), 1000);
    return () => {
      clearInterval(asking);
      clearInterval(ticking);
      if (pending) void hub.api.call("DELETE", place).catch(() => {});
      pending = false;
    };
  }, []);
  return { info, left: Math.max(0, (ends - now) / 1000) };
}
