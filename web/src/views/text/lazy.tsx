/** A view whose code is fetched when it is first wanted. Until then there is nothing, or what stands in for it. */
import { type ComponentChildren, type ComponentType, h } from "preact";
import { useEffect, useState } from "preact/hooks";

export function lazily<Props extends object>(load: () => Promise<ComponentType<Props>>) {
  let ready: ComponentType<Props> | null = null;
  let coming: Promise<void> | null = null;
  const fetchIt = () => (coming ??= load().then((view) => void (ready = view)));
  function Lazy(props: Props & { meanwhile?: ComponentChildren }) {
    const [failed, setFailed] = useState(false);
    const [, again] = useState(0);
    useEffect(() => {
      if (ready || failed) return undefined;
      let here = true;
      fetchIt().then(
        () => here && again(1),
        () => {
          coming = null; // another try may find the network
          if (here) setFailed(true);
        },
      );
      return () => void (here = false);
    }, [failed]);
    if (ready) return h(ready as ComponentType<object>, props);
    if (!failed) return <>{props.meanwhile ?? null}</>;
    return (
      <button type="button" class="button quiet" onClick={() => setFailed(false)}>
        This part could not be loaded. Try again
      </button>
    );
  }
  /** Have it ready before it is wanted. */
  Lazy.ahead = (): void => void fetchIt().catch(() => (coming = null));
  return Lazy;
}
