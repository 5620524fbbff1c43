/** For a browser that the hub does not know: how to get in. */
import { useHub } from "../../app/context";
import { Copy } from "../../ui/copy";

export function Stranger() {
  const hub = useHub();
  return (
    <div class="door">
      <div class="door-card card">
        <h1>You are not logged in</h1>
        <section>
          <h2>On the machine of the hub</h2>
          <Line text="pilothouse serve" />
          <p class="muted">
            prints a link, also while the hub runs. Open it in this browser: it works once, within five minutes.
          </p>
        </section>
        <section>
          <h2>On a phone or another computer</h2>
          <Line text="pilothouse pair" />
          <p class="muted">shows a QR code and six digits. Scan the code with the device, and type the digits there.</p>
        </section>
        <button type="button" class="button" onClick={() => hub.link.retry()}>
          Try again
        </button>
      </div>
    </div>
  );
}

function Line({ text }: { text: string }) {
  return (
    <p class="door-line">
      <code>{text}</code>
      <Copy text={text} label={`Copy ${text}`} />
    </p>
  );
}
