/**
 * The diff views for all other views: loaded when the first is drawn, with as much room as it will take about.
 *
 * Only types may be imported from the views, or the first load pays for all of it.
 */
import type { ComponentType } from "preact";
import { visible } from "../../text/highlight/odd";
import { Icon } from "../../ui/icon";
import { lazily, Missing } from "../../ui/lazy";

type Views = typeof import("./views");
type Props<Name extends keyof Views> = Parameters<Views[Name]>[0];

/** What is known of a diff without reading it. */
interface Sketch {
  path: string;
  lines: number;
}

/** Rows beyond which nobody sees that there was less room. */
const ENOUGH = 100;

function later<Name extends keyof Views>(name: Name, sketch: (props: Props<Name>) => Sketch) {
  return lazily<Props<Name>>(
    () => import("./views").then((views) => views[name] as ComponentType<Props<Name>>),
    (props, again) => <Waiting {...sketch(props)} again={again} />,
  );
}

function Waiting({ path, lines, again }: Sketch & { again: (() => void) | null }) {
  const style = { minHeight: `calc(var(--code-row) * ${Math.min(lines, ENOUGH)} + 42px)` };
  return (
    <section class="diff" aria-busy={!again} style={style}>
      <header class="diff-head">
        <Icon name="file" size={14} />
        <strong class="cut">{visible(path)}</strong>
      </header>
      {again && <Missing again={again} />}
    </section>
  );
}

function linesOf(text: string | null | undefined): number {
  let lines = 0;
  for (let at = 0; text && at >= 0 && lines < ENOUGH; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

export const Diff = later("Diff", ({ path, before, after }) => ({
  path,
  lines: Math.max(linesOf(before), linesOf(after)),
}));
export const Patch = later("Patch", ({ path, patch }) => ({ path, lines: linesOf(patch) - 3 }));
export const FileChangeView = later("FileChangeView", ({ change }) => ({
  path: change.path,
  lines: change.diff ? linesOf(change.diff) - 3 : 2,
}));
export const PreviewDiff = later("PreviewDiff", ({ preview }) => ({
  path: preview.path,
  lines: linesOf(preview.diff) - 3,
}));
export const Changes = later("Changes", ({ files }) => ({
  path: files.length === 1 ? (files[0]?.path ?? "") : `${files.length} files`,
  lines: files.length * 10,
}));
