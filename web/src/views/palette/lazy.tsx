/** What lies over the page when it is asked for, and the keys that ask for it. */
import { go } from "../../app/route";
import { panel, type Shortcut, useShortcuts } from "../../app/shortcuts";
import { lazily } from "../../ui/lazy";

interface Props {
  close(): void;
}

export const Palette = lazily<Props>(() => import("./palette").then((part) => part.Palette));
export const Help = lazily<Props>(() => import("./help").then((part) => part.Help));
export const Settings = lazily<Props>(() => import("./settings").then((part) => part.Settings));
const RenameOpen = lazily<Props>(() => import("./opened").then((part) => part.RenameOpen));
const ArchiveOpen = lazily<Props>(() => import("./opened").then((part) => part.ArchiveOpen));

const PANELS = { palette: Palette, help: Help, settings: Settings, rename: RenameOpen, archive: ArchiveOpen };
const toggle = (name: keyof typeof PANELS) => () => (panel.value = panel.peek() === name ? null : name);

const KEYS: readonly Shortcut[] = [
  { keys: "mod+k", label: "Find a session or an action", group: "Everywhere", run: toggle("palette") },
  { keys: "?", label: "Show these keys", group: "Everywhere", run: toggle("help") },
  { keys: "mod+,", label: "Settings", group: "Everywhere", run: toggle("settings") },
  { keys: "n", label: "New session", group: "Everywhere", run: () => go({ view: "new" }) },
];

/** Once on the page. */
export function Panels() {
  useShortcuts(KEYS);
  const Shown = panel.value && PANELS[panel.value];
  return Shown && <Shown close={() => (panel.value = null)} />;
}
