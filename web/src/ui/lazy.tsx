/** Parts of the page that are fetched when they are first wanted. */
import { type ComponentChildren, type ComponentType, createElement } from "preact";
import { useEffect, useState } from "preact/hooks";

/** What is shown in its place; `again` once it could not be fetched. */
type StandIn<Props> = (props: Props, again: (() => void) | null) => ComponentChildren;

export function lazily<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  standIn: StandIn<Props> = (_, again) => again && <Missing again={again} />,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props) {
    const [, draw] = useState(0);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      // another one of these may have fetched it since this one was drawn
      if (loaded) draw(1);
      if (loaded || failed) return undefined;
      let here = true;
      load().then(
        (found) => {
          loaded = found;
          if (here) draw(1);
        },
        () => here && setFailed(true),
      );
      return () => void (here = false);
    }, [failed]);
    if (loaded) return createElement(loaded, props);
    return <>{standIn(props, failed ? () => setFailed(false) : null)}</>;
  };
}

/** A hub of a newer version has other files, which only a page that is loaded again asks for. */
export function Missing({ again }: { again(): void }) {
  return (
    <p class="missing" role="alert">
      This part of the page could not be loaded.{" "}
      <button type="button" class="button" onClick={again}>
        Try again
      </button>{" "}
      <button type="button" class="button quiet" onClick={() => location.reload()}>
        Reload the page
      </button>
    </p>
  );
}
