/** What a transcript is drawn from: a session that is open, or one that is played again. */
import type { ReadonlySignal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { OpenContext } from "../../app/context";
import type { OpenSession } from "../../app/open";
import type { SessionItem } from "../../model/wire.gen";
import { useNow } from "../../ui/now";

export type Source = Pick<OpenSession, "session" | "items" | "head" | "version" | "grown"> & {
  /** The moment that is shown, in milliseconds, where it is past: nobody can answer anything there. */
  readonly past?: ReadonlySignal<number>;
};

export const SourceContext = createContext<Source | null>(null);

export function useSource(): Source {
  const given = useContext(SourceContext);
  const open = useContext(OpenContext);
  const source = given ?? open;
  if (!source) throw new Error("no session around this view");
  return source;
}

/** Whether it is past what is shown. */
export const useIsPast = (): boolean => useContext(SourceContext)?.past !== undefined;

/** The present in milliseconds, anew every second while `running`; of what is played, the moment that is shown. */
export function useMoment(running: boolean): number {
  const past = useContext(SourceContext)?.past;
  const now = useNow(running && !past);
  return past && running ? past.value : now;
}

/**
 * Draw the view again when the item changes. Items are changed in place, and a view that has a state of its own or reads
 * a signal is not drawn again with the one around it where its props are the same: each that shows an item asks for this.
 */
export function useVersion(item: SessionItem): void {
  void useSource().version(item).value;
}
