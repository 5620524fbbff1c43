/** The device's side of pairing: it has a ticket by its address, and a code is typed that only the host shows. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused } from "../../app/api";
import { useHub } from "../../app/context";
import { words } from "../../app/hub";
import { go, route } from "../../app/route";
import { isObject } from "../../model/json";
import { Icon } from "../../ui/icon";
import { digitsOf, ownName, triesLeft } from "./naming";
import { Rights } from "./scopes";

interface Paired {
  name: string;
  scopes: string[];
}

const DIGITS = 6;

export function Pair() {
  const [paired, setPaired] = useState<Paired | null>(null);
  const at = route.value;
  const ticket = at.view === "pair" ? at.ticket : "";
  return (
    <div class="door">{paired ? <Welcome {...paired} /> : <Ask key={ticket} ticket={ticket} done={setPaired} />}</div>
  );
}

function Ask({ ticket, done }: { ticket: string; done(paired: Paired): void }) {
  const hub = useHub();
  const [code, setCode] = useState("");
  const [name, setName] = useState(() => ownName(navigator.userAgent));
  const [trouble, setTrouble] = useState<string | null>(null);
  const [dead, setDead] = useState(false);
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (code.length < DIGITS) {
      setTrouble("The code has six digits.");
      return field.current?.focus();
    }
    setBusy(true);
    try {
      const paired = await hub.api.post<Paired>("pair", { ticket, code, name: name.trim() || "device" });
      // a used ticket has no business in the address bar or the history
      history.replaceState(null, "", location.pathname + location.search);
      hub.link.retry(); // as the device that it is now
      done(paired);
    } catch (error) {
      const { text, over } = refusal(error);
      setTrouble(text);
      setDead(over);
      setCode("");
      setBusy(false);
      field.current?.focus();
    }
  };
  if (dead) return <Dead text={trouble ?? ""} />;
  return (
    <form class="door-card card" onSubmit={(event) => void submit(event)} noValidate>
      <h1>Pair this device</h1>
      <p class="muted">
        The machine of the hub shows a code of six digits beside the QR code. What this device may do was chosen there.
      </p>
      {hub.me.value && (
        <p class="small muted">
          This browser is known to the hub already, as <b>{hub.me.value.name}</b>. Pairing makes it another device.
        </p>
      )}
      <label class="new-label" for="pair-code">
        Code
      </label>
      <input
        ref={field}
        id="pair-code"
        class="field door-code"
        inputMode="numeric"
        autocomplete="one-time-code"
        pattern="[0-9 ]*"
        maxLength={7}
        placeholder="000 000"
        value={code.replace(/^(\d{3})(\d)/, "$1 $2")}
        aria-invalid={trouble !== null}
        aria-describedby="pair-trouble"
        onInput={(event) => setCode((event.currentTarget.value = digitsOf(event.currentTarget.value)))}
      />
      <p id="pair-trouble" class="new-trouble bad small" role="alert" hidden={!trouble}>
        {trouble}
      </p>
      <label class="new-label" for="pair-name">
        Name of this device
      </label>
      <input
        id="pair-name"
        class="field"
        maxLength={64}
        value={name}
        spellcheck={false}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <p class="small muted">What is decided here is signed with it.</p>
      <button type="submit" class="button primary door-go" disabled={busy}>
        {busy ? "Pairing…" : "Pair"}
      </button>
    </form>
  );
}

/** What to say, and whether the ticket is of no use any more. */
function refusal(error: unknown): { text: string; over: boolean } {
  if (!(error instanceof Refused)) return { text: words(error), over: false };
  const { code, message, details } = error.failure;
  if (code === "ticket_refused")
    return { text: "This QR code was used already, withdrawn, or is too old.", over: true };
  if (code !== "code_refused") return { text: `${message}.`, over: false };
  const left = isObject(details) && typeof details["triesLeft"] === "number" ? details["triesLeft"] : 0;
  return { text: `That is not the code that the host shows. ${triesLeft(left)}`, over: left <= 0 };
}

function Dead({ text }: { text: string }) {
  const hub = useHub();
  return (
    <div class="door-card card" role="alert">
      <h1>This link does not work any more</h1>
      <p>{text}</p>
      <p class="muted">
        On the machine of the hub, run <code>pilothouse pair</code> (or open Devices there) and scan the new code.
      </p>
      {hub.me.value && (
        <button type="button" class="button" onClick={() => go({ view: "sessions" })}>
          Show the sessions
        </button>
      )}
    </div>
  );
}

function Welcome({ name, scopes }: Paired) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current?.focus(), []);
  return (
    <div class="door-card card" role="status">
      <p class="door-ok">
        <Icon name="check" size={28} />
      </p>
      <h1>Paired</h1>
      <p>
        The hub knows this device as{" "}
        <b>
          <bdi>{name}</bdi>
        </b>
        . It may:
      </p>
      <Rights scopes={scopes} />
      <button ref={button} type="button" class="button primary door-go" onClick={() => go({ view: "sessions" })}>
        Show the sessions
      </button>
    </div>
  );
}
