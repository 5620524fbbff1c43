/** A view that is drawn again only when one of its properties is another one. */
import { Component, type ComponentChildren, type FunctionComponent, h } from "preact";

export function memo<Props extends object>(View: FunctionComponent<Props>) {
  return class Memo extends Component<Props> {
    override shouldComponentUpdate(next: Readonly<Props>): boolean {
      return differs(this.props, next);
    }
    override render(): ComponentChildren {
      return h(View as FunctionComponent<object>, this.props);
    }
  };
}

function differs(one: object, other: object): boolean {
  const before = one as Record<string, unknown>;
  const after = other as Record<string, unknown>;
  for (const name in after) if (name !== "children" && after[name] !== before[name]) return true;
  return Object.keys(before).length !== Object.keys(after).length;
}
