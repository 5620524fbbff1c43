/**
 * The page of an exported session begins here. All of it is in one file: this, the styles, and the events.
 *
 * Until this runs, and where it may not, the file shows the transcript as plain HTML; that is taken away only once
 * the page has been drawn. Nothing here reaches for the network, and the file forbids it.
 */
import { render } from "preact";
import { Recording } from "./app/recording";
import { ReplaySession } from "./app/replay";
import { listenForKeys } from "./app/shortcuts";
import { browserPorts } from "./link/browser";
import type { SessionEvent } from "./model/wire.gen";
import { Player } from "./views/replay/player";

interface Exported {
  title: string | null;
  events: SessionEvent[];
}

const { title, events } = JSON.parse(document.getElementById("recording")?.textContent ?? "") as Exported;
const replay = new ReplaySession(new Recording(events), browserPorts().clock);
const place = document.createElement("div");
place.id = "app";
document.body.prepend(place);
render(<Player replay={replay} title={title} />, place);
for (const plain of document.querySelectorAll("#plain, #plain-style")) plain.remove();
document.getElementById("app-style")?.removeAttribute("media");
listenForKeys();
