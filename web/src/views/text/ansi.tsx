/** What a program printed, in its colours. Text nodes only; the sixteen named colours are the theme's. */
import { AnsiScreen } from "../../text/ansi/screen";
import type { Line, Span } from "../../text/ansi/row";
import type { Colour, Style } from "../../text/ansi/style";
import { memo } from "./memo";

export class FedScreen extends AnsiScreen {
  feed(text: string): void {
    this.write(text);
  }
}

export function Ansi({ lines }: { lines: readonly Line[] }) {
  return (
    <pre class="ansi">
      {lines.map((line) => (
        <AnsiLine key={line.key} line={line} />
      ))}
    </pre>
  );
}

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
