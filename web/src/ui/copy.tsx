/** A button that copies a text, and says that it did. */
import { useState } from "preact/hooks";
import { Icon } from "./icon";

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByHand(text); // a page by plain HTTP from another machine has no clipboard
  }
}

function copyByHand(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "aside";
  document.body.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } finally {
    area.remove();
  }
}

export function Copy({ text, label = "Copy" }: { text: string | (() => string); label?: string }) {
  const [done, setDone] = useState<boolean | null>(null);
  const copy = async () => {
    setDone(await copyText(typeof text === "string" ? text : text()));
    setTimeout(() => setDone(null), 1500);
  };
  const said = done === null ? label : done ? "Copied" : "Could not copy";
  return (
    <button type="button" class="button quiet icon copy" aria-label={said} title={said} onClick={copy}>
      <Icon name={done ? "check" : "copy"} size={14} />
    </button>
  );
}
