/** Icons: one path each, drawn with the colour of the text around them, on a grid of 16. */
const PATHS = {
  read: "M3 2.5h6l4 4v7h-10zM9 2.5v4h4",
  edit: "M3 13l.6-3L10.5 3 13 5.5 6 12.4zM9 4.5 11.5 7",
  terminal: "M2.5 4l4 4-4 4M8 12.5h5.5",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5 14 14",
  web: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM2 8h12M8 2c2 1.7 2.6 3.8 2.6 6S10 12.3 8 14C6 12.3 5.4 10.2 5.4 8S6 3.7 8 2z",
  git: "M4.5 2.5v11M4.5 9.5c4 0 7-1 7-4.5M11.5 2.5v2.5",
  agent: "M3 6h10v7H3zM8 2.5V6M5.8 9h.01M10.2 9h.01M6 11.5h4",
  plug: "M5.5 2v4M10.5 2v4M3.5 6h9v2.5a4.5 4.5 0 0 1-9 0zM8 13v2",
  tool: "M9.5 4.5a3 3 0 0 1 4-2.3L11.5 4.5l.3 1.7 1.7.3L15 4.8a3 3 0 0 1-4 3.4L5.5 13.5a1.5 1.5 0 0 1-2.5-2.5L9 6a3 3 0 0 1 .5-1.5z",
  think: "M8 2a4.2 4.2 0 0 0-2.5 7.6V11.5h5V9.6A4.2 4.2 0 0 0 8 2zM6 14h4",
  check: "M3 8.5 6.5 12 13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  warning: "M8 2.5 14.5 13.5h-13zM8 6.5v3.5M8 12h.01",
  info: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 7.3v3.7M8 5h.01",
  question: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM6.3 6.3C6.5 4.3 9.7 4.3 9.7 6.4 9.7 7.8 8 7.7 8 9.2M8 11.3h.01",
  right: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  up: "M3.5 10 8 5.5 12.5 10",
  back: "M10 3.5 5.5 8 10 12.5",
  plus: "M8 3v10M3 8h10",
  more: "M3.2 7.7h.6v.6h-.6zM7.7 7.7h.6v.6h-.6zM12.2 7.7h.6v.6h-.6z",
  settings:
    "M2 4.5h6.5M12.5 4.5H14M10.5 2.5a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM2 11.5h1.5M7.5 11.5H14M5.5 9.5a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  send: "M8 13.5v-11M3.5 7 8 2.5 12.5 7",
  stop: "M4.5 4.5h7v7h-7z",
  copy: "M5.5 5.5h8v8h-8zM3 10.5H2.5v-8h8V3",
  download: "M8 2.5v8M4.5 7.5 8 11l3.5-3.5M2.5 13.5h11",
  image: "M2.5 3.5h11v9h-11zM2.5 11l3.5-3.5 3 3 2-2 2.5 2.5M10.7 6h.01",
  file: "M3.5 2h5.5l3.5 3.5v8.5h-9z",
  folder: "M2 4h4.5l1.5 2H14v7H2z",
  phone: "M4.5 1.5h7v13h-7zM7 12.5h2",
  laptop: "M3.5 3.5h9v7h-9zM1.5 12.8h13",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1.2 1.5H2.8zM6.7 14.5h2.6",
  shield: "M8 1.8 13 4v4c0 3.2-2.2 5.3-5 6.2C5.2 13.3 3 11.2 3 8V4z",
  archive: "M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 8.5h3",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3.3L10.3 10",
  play: "M5 3.5v9l7.5-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  list: "M6 4h8M6 8h8M6 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  keyboard: "M1.5 4h13v8.5h-13zM4 6.7h.01M6.7 6.7h.01M9.3 6.7h.01M12 6.7h.01M5 10h6",
  link: "M6.5 9.5l3-3M7 4.5 8.5 3a3 3 0 0 1 4.5 4.3L11.5 9M4.5 7 3 8.7A3 3 0 0 0 7.3 13L9 11.5",
  fold: "M8 2v4M5.5 4 8 6.5 10.5 4M8 14v-4M5.5 12 8 9.5l2.5 2.5",
} as const;

export type IconName = keyof typeof PATHS;

/** Decoration only: what it means is said in words beside it, or by the label of the button around it. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
