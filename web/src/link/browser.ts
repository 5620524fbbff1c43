/** The world as a browser has it. The only module here that does I/O. */
import type { Json } from "../model/wire.gen";
import type { Link } from "./link";
import type { Answer, Ports, Request, SocketEvents, SocketPort } from "./ports";

/** Ports for the hub that this page came from, also below a path of a site. */
export function browserPorts(base = document.baseURI): Ports {
  return {
    clock: {
      now: () => performance.now(),
      after: (milliseconds, call) => {
        const timer = setTimeout(call, milliseconds);
        return () => clearTimeout(timer);
      },
    },
    random: Math.random,
    newId: () => `web-${Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("")}`,
    openSocket: (path, events) => openSocket(new URL(path, base), events),
    fetch: (path, request) => ask(new URL(path, base), request),
  };
}

function openSocket(url: URL, events: SocketEvents): SocketPort {
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(url);
  let heard = true;
  socket.onopen = () => heard && events.opened();
  socket.onmessage = ({ data }) => heard && typeof data === "string" && events.message(data);
  socket.onclose = ({ code }) => heard && events.closed(code);
  return {
    send: (text) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close: () => {
      heard = false;
      socket.close();
    },
  };
}

async function ask(url: URL, { method = "GET", body, signal }: Request = {}): Promise<Answer> {
  const headers = { Accept: "application/json", ...(body !== undefined && { "Content-Type": "application/json" }) };
  const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal) init.signal = signal;
  const response = await fetch(url, init);
  const read = (await response.json().catch(() => null)) as Json;
  return { status: response.status, body: read };
}

/** Wake the link whenever the page is looked at again, or the network is back; doubt it when that is gone. Gives the way to stop that. */
export function wakeWith(link: Link): () => void {
  const wake = () => {
    if (document.visibilityState === "visible") link.wake();
  };
  const doubt = () => link.doubt();
  const sources: [EventTarget, string, () => void][] = [
    [document, "visibilitychange", wake],
    [window, "online", wake],
    [window, "pageshow", wake],
    [window, "focus", wake],
    [window, "offline", doubt],
  ];
  for (const [target, event, heard] of sources) target.addEventListener(event, heard);
  return () => {
    for (const [target, event, heard] of sources) target.removeEventListener(event, heard);
  };
}
