/** The head of a changed file: which file, what became of it, how much, and how to look at it. */
import { useContext } from "preact/hooks";
import { visible } from "../../text/highlight/odd";
import { Copy } from "../../ui/copy";
import { Icon } from "../../ui/icon";
import { short } from "../cards/kinds";
import { odd } from "../code/line";
import { SourceContext } from "../text/source";
import { chosen, type Room, wrapped } from "./layout";

export type Kind = "created" | "deleted" | "renamed" | "modified";

export interface Counts {
  readonly added: number;
  readonly removed: number;
}

const CHIPS: Readonly<Record<Kind, readonly [text: string, style: string] | null>> = {
  created: ["New", "ok"],
  deleted: ["Deleted", "bad"],
  renamed: ["Renamed", "diff-renamed"],
  modified: null,
};

/** Whether a file is folded, where it can be. */
export interface Fold {
  readonly open: boolean;
  toggle(): void;
}

interface Props {
  path: string;
  from?: string | undefined;
  kind: Kind;
  counts: Counts | null;
  /** What else there is to say in a word. */
  remarks: readonly string[];
  fold?: Fold | undefined;
  /** Null where there are no lines to lay out. */
  room: Room | null;
}

export function Head({ path, from, kind, counts, remarks, fold, room }: Props) {
  const chip = CHIPS[kind];
  const within = useContext(SourceContext)?.session.peek()?.fields.workingDirectory ?? "";
  return (
    <header class="diff-head">
      {fold && (
        <button
          type="button"
          class="diff-tool"
          aria-expanded={fold.open}
          aria-label={`${fold.open ? "Fold" : "Unfold"} ${visible(path)}`}
          onClick={fold.toggle}
        >
          <Icon name={fold.open ? "down" : "right"} size={14} />
        </button>
      )}
      {!fold && <Icon name="file" size={14} />}
      <Path path={path} from={from} within={within} />
      <Copy text={path} label="Copy path" />
      <span class="diff-facts">
        {chip && <span class={`chip ${chip[1]}`}>{chip[0]}</span>}
        {remarks.map((remark) => (
          <span class="chip">{remark}</span>
        ))}
        {counts && <CountsView {...counts} />}
      </span>
      {room && <Tools room={room} />}
    </header>
  );
}

interface PathProps {
  path: string;
  from?: string | undefined;
  /** The directory that everybody knows: what is below it is told from there. */
  within?: string;
}

/** A path whose directory gives way first, so that the name stays. */
export function Path({ path, from, within = "" }: PathProps) {
  return (
    <span class="diff-path" title={visible(from ? `${from} → ${path}` : path)}>
      {from && <OnePath path={short(from, within)} />}
      <OnePath path={short(path, within)} renamed={!!from} />
    </span>
  );
}

function OnePath({ path, renamed }: { path: string; renamed?: boolean }) {
  const cut = path.replace(/[/\\]+$/, "").search(/[^/\\]*$/);
  return (
    <span class="diff-one">
      {renamed && (
        <span class="diff-arrow" role="img" aria-label="renamed to">
          →
        </span>
      )}
      {cut > 0 && <span class="diff-dir">{odd(path.slice(0, cut))}</span>}
      <strong class="diff-name">{odd(path.slice(cut))}</strong>
    </span>
  );
}

export function CountsView({ added, removed }: Counts) {
  const words = `${added.toLocaleString()} added, ${removed.toLocaleString()} removed`;
  return (
    <span class="diff-counts" role="img" aria-label={words}>
      {(added > 0 || !removed) && <span class="diff-plus">+{added.toLocaleString()}</span>}
      {(removed > 0 || !added) && <span class="diff-minus">−{removed.toLocaleString()}</span>}
    </span>
  );
}

/** Two columns; a line that turns around. */
const GLYPHS = {
  split: "M2.5 3h11v10h-11zM8 3v10",
  wrap: "M2.5 4h11M2.5 8h9a2 2 0 0 1 0 4H8.5M10 10.5 8.5 12l1.5 1.5M2.5 12h3",
};

function Tools({ room }: { room: Room }) {
  const split = room.layout === "split";
  return (
    <span class="diff-tools">
      {!split && (
        <Toggle
          glyph="wrap"
          label="Wrap long lines"
          on={wrapped.value}
          press={() => (wrapped.value = !wrapped.value)}
        />
      )}
      {room.choice && (
        <Toggle
          glyph="split"
          label="Side by side"
          on={split}
          press={() => (chosen.value = split ? "unified" : "split")}
        />
      )}
    </span>
  );
}

function Toggle(props: { glyph: keyof typeof GLYPHS; label: string; on: boolean; press(): void }) {
  return (
    <button
      type="button"
      class="diff-tool"
      aria-pressed={props.on}
      aria-label={props.label}
      title={props.label}
      onClick={props.press}
    >
      <svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
        <path d={GLYPHS[props.glyph]} />
      </svg>
    </button>
  );
}
