/** A text that may be long: its beginning, and all of it when asked for. */
import { useState } from "preact/hooks";
import { isObject } from "../../model/json";
import type { Json } from "../../model/wire.gen";
import { Copy } from "../../ui/copy";
import { bytes } from "../../ui/time";
import { JsonTree } from "./json";

/** Characters that are shown at first. */
const LIMIT = 8000;

export function Output({ text, label = "Output" }: { text: string; label?: string }) {
  const [all, setAll] = useState(false);
  const value = parsed(text);
  if (!text.trim()) return null;
  if (value !== undefined) return <JsonTree value={value} />;
  const long = text.length > LIMIT * 1.2;
  return (
    <div class="output">
      <pre class="output-text" tabIndex={0} aria-label={label}>
        {long && !all ? text.slice(0, LIMIT) : text}
      </pre>
      <div class="output-tools">
        <Copy text={text} label={`Copy ${label.toLowerCase()}`} />
      </div>
      {long && !all && (
        <button type="button" class="more" onClick={() => setAll(true)}>
          Show all ({bytes(text.length)})
        </button>
      )}
    </div>
  );
}

/** The value of a text that is a JSON object or list. */
function parsed(text: string): Json | undefined {
  if (!/^\s*[[{]/.test(text) || text.length > 1_000_000) return undefined;
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) || Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Agents put a whole file between two fences. */
export const unfenced = (text: string): string => /^\s*```[^\n]*\n([\s\S]*?)\n?```\s*$/.exec(text)?.[1] ?? text;
