/** Views that are rarely wanted come when they are: a part of the page that loads by itself. */
import { type ComponentChildren, type ComponentType, createElement } from "preact";
import { useEffect, useState } from "preact/hooks";

/** The component that `load` gives; until it is there `waiting` is shown, and where it cannot come, the way out. */
export function lazily<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  waiting: ComponentChildren = null,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props) {
    const [, draw] = useState(0);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded || failed) return;
      let here = true;
      load().then(
        (found) => {
          loaded = found;
          if (here) draw(1);
        },
        () => here && setFailed(true),
      );
      return () => {
        here = false;
      };
    }, [failed]);
    if (loaded) return createElement(loaded, props);
    return failed ? <Missing again={() => setFailed(false)} /> : <>{waiting}</>;
  };
}

function Missing({ again }: { again(): void }) {
  return (
    <p class="missing" role="alert">
      This part of the page could not be loaded.{" "}
      <button type="button" class="button" onClick={again}>
        Try again
      </button>
    </p>
  );
}
