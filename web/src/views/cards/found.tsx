/** What a search found, by file. */
import { useState } from "preact/hooks";
import type { SearchMatch, ToolCall } from "../../model/wire.gen";
import { Seen } from "../approvals/hidden";
import { useSource, useVersion } from "../text/source";
import { short } from "./kinds";
import { Output, unfenced } from "./output";

const SHOWN = 40;

export function Found({ call }: { call: ToolCall }) {
  useVersion(call);
  const [all, setAll] = useState(false);
  const cwd = useSource().session.peek()?.fields.workingDirectory ?? "";
  if (call.structured?.type !== "search_results") return <Output text={unfenced(call.output ?? "")} />;
  const { results } = call.structured;
  if (!results.length) return <p class="muted small">Nothing found</p>;
  const shown = all ? results : results.slice(0, SHOWN);
  return (
    <div class="found">
      {[...byFile(shown)].map(([file, matches]) => (
        <section key={file}>
          <h4 class="found-file mono">
            <Seen text={short(file, cwd)} />
          </h4>
          <ul>
            {matches
              .filter(({ line, content }) => line > 0 || content)
              .map(({ line, content }, at) => (
                <li key={at} class="found-match mono">
                  <span class="found-line">{line > 0 ? line : ""}</span>
                  <span class="found-text">
                    <Seen text={content.slice(0, 500)} />
                  </span>
                </li>
              ))}
          </ul>
        </section>
      ))}
      {shown.length < results.length && (
        <button type="button" class="more" onClick={() => setAll(true)}>
          Show all {results.length} results
        </button>
      )}
    </div>
  );
}

function byFile(matches: readonly SearchMatch[]): Map<string, SearchMatch[]> {
  const files = new Map<string, SearchMatch[]>();
  for (const match of matches) {
    const known = files.get(match.file);
    if (known) known.push(match);
    else files.set(match.file, [match]);
  }
  return files;
}
