/** What every view may reach without being handed it: the hub, and the session that is open. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Hub } from "./hub";
import type { OpenSession } from "./open";

export const HubContext = createContext<Hub | null>(null);
export const OpenContext = createContext<OpenSession | null>(null);

export function useHub(): Hub {
  const hub = useContext(HubContext);
  if (!hub) throw new Error("no hub around this view");
  return hub;
}

export function useOpen(): OpenSession {
  const open = useContext(OpenContext);
  if (!open) throw new Error("no open session around this view");
  return open;
}
