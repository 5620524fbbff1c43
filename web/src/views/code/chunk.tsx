/** Rows that are drawn when they come near the screen; until then there is as much room as they will take. */
import { Component, type ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useNear } from "./near";

interface Props {
  rows: number;
  /** What is on the screen at first, and is not to wait. */
  first: boolean;
  class: string;
  tag?: "div" | "span";
  role?: "rowgroup";
  children: () => ComponentChildren;
}

export function Chunk({ rows, first, class: name, tag: Tag = "div", role, children }: Props) {
  const ref = useRef<HTMLElement>(null);
  const near = useNear(ref, first);
  const height = `calc(var(--code-row) * ${rows})`;
  const style = near ? { containIntrinsicBlockSize: `auto ${height}` } : { height };
  return (
    <Tag
      ref={ref as never}
      class={near && !first ? `${name} code-away` : name}
      {...(role && near && { role })}
      style={style}
    >
      {near && children()}
    </Tag>
  );
}

/** Draws its children again only when one of `on` is another value than before. */
export class Still extends Component<{ on: readonly unknown[]; children: () => ComponentChildren }> {
  override shouldComponentUpdate({ on }: { on: readonly unknown[] }): boolean {
    const before = this.props.on;
    return on.length !== before.length || on.some((value, at) => value !== before[at]);
  }

  override render() {
    return this.props.children();
  }
}
