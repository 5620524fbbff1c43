/** What a program printed, in its colours. Text nodes only; the sixteen named colours are the theme's. */
import { useEffect, useRef, useState } from "preact/hooks";
import { AnsiScreen } from "../../text/ansi/screen";
import type { Line, Span } from "../../text/ansi/row";
import type { Colour, Style } from "../../text/ansi/style";
import { memo } from "./memo";

export class FedScreen extends AnsiScreen {
  feed(text: string): void {
    this.write(text);
  }
}

/** Lines that are drawn at a time: many take longer than a frame has. */
const GROUP = 250;

/** `gradually`: a group a frame, from the first line on. */
export function Ansi({ lines, gradually = false }: { lines: readonly Line[]; gradually?: boolean }) {
  const before = useRef<readonly (readonly Line[])[]>([]);
  const groups = (before.current = grouped(lines, before.current));
  const drawn = useSteps(groups.length, gradually);
  return (
    <pre class="ansi">
      {groups.slice(0, drawn).map((group, at) => (
        <Group key={at} lines={group} />
      ))}
    </pre>
  );
}

/** Groups in which nothing changed stay the same objects. */
function grouped(lines: readonly Line[], before: readonly (readonly Line[])[]): readonly (readonly Line[])[] {
  return Array.from({ length: Math.ceil(lines.length / GROUP) }, (_, at) => {
    const group = lines.slice(at * GROUP, (at + 1) * GROUP);
    const old = before[at];
    return old?.length === group.length && old.every((line, index) => line === group[index]) ? old : group;
  });
}

/** Counts up to `most`, one a frame, where that is wanted. */
function useSteps(most: number, wanted: boolean): number {
  const [steps, setSteps] = useState(1);
  useEffect(() => {
    if (!wanted || steps >= most) return undefined;
    const frame = requestAnimationFrame(() => setSteps(steps + 1));
    return () => cancelAnimationFrame(frame);
  }, [steps, most, wanted]);
  return wanted ? steps : most;
}

const Group = memo(({ lines }: { lines: readonly Line[] }) => (
  <>
    {lines.map((line) => (
      <AnsiLine key={line.key} line={line} />
    ))}
  </>
));

const AnsiLine = memo(({ line }: { line: Line }) => (
  <div class="ansi-line">{line.spans.length ? line.spans.map((span, at) => <Piece key={at} span={span} />) : "\n"}</div>
));

function Piece({ span: { text, style } }: { span: Span }) {
  const names = namesOf(style);
  const colours = coloursOf(style);
  return names || colours ? (
    <span class={names || undefined} style={colours}>
      {text}
    </span>
  ) : (
    <>{text}</>
  );
}

const FLAGS = ["bold", "dim", "italic", "underline", "inverse", "hidden", "strike"] as const;

function namesOf(style: Style): string {
  const names = FLAGS.filter((flag) => style[flag]).map((flag) => `ansi-${flag}`);
  if (isNamed(style.foreground)) names.push(`ansi-fg-${style.foreground}` as never);
  if (isNamed(style.background)) names.push(`ansi-bg-${style.background}` as never);
  return names.join(" ");
}

const isNamed = (colour: Colour | undefined): colour is number => typeof colour === "number" && colour < 16;

/** Colours that are no theme's are drawn towards the ink, so that they can be read on either ground. */
function coloursOf({ foreground, background }: Style): Record<string, string> | undefined {
  const fore = exact(foreground);
  const back = exact(background);
  if (!fore && !back) return undefined;
  return {
    ...(fore && { color: back ? fore : `color-mix(in srgb, ${fore} 65%, var(--ink))` }),
    ...(back && { backgroundColor: back }),
  };
}

const LEVELS = [0, 95, 135, 175, 215, 255];

function exact(colour: Colour | undefined): string | null {
  if (colour === undefined || isNamed(colour)) return null;
  if (typeof colour === "string") return colour;
  if (colour >= 232) return grey(8 + (colour - 232) * 10);
  const place = colour - 16;
  return `rgb(${LEVELS[Math.floor(place / 36)]} ${LEVELS[Math.floor(place / 6) % 6]} ${LEVELS[place % 6]})`;
}

const grey = (level: number): string => `rgb(${level} ${level} ${level})`;
