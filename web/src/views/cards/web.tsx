/** A page that was fetched, or what a search of the web gave. Links are for people to follow; nothing is loaded. */
import type { ToolCall, WebOperation } from "../../model/wire.gen";
import { Seen } from "../approvals/hidden";
import { hostOf } from "../text/links";
import { Output, unfenced } from "./output";
import { useVersion } from "../text/source";

export function Web({ call }: { call: ToolCall }) {
  useVersion(call);
  const found = call.structured?.type === "web_content" ? call.structured : null;
  return (
    <div class="web">
      {call.web?.map((operation, at) => (
        <Operation key={at} operation={operation} />
      ))}
      {found && !call.web?.length && <Site url={found.url} title={found.title} />}
      {found?.summary ? (
        <p class="small">{found.summary.slice(0, 4000)}</p>
      ) : (
        <Output text={unfenced(call.output ?? "")} />
      )}
    </div>
  );
}

function Operation({ operation }: { operation: WebOperation }) {
  if (operation.kind === "fetch") return <Site {...operation} />;
  return (
    <ol class="web-results">
      {(operation.results ?? []).slice(0, 20).map(({ url, title, snippet }, at) => (
        <li key={at}>
          <Site url={url} title={title} />
          {snippet && (
            <p class="muted small">
              <Seen text={snippet} />
            </p>
          )}
        </li>
      ))}
    </ol>
  );
}

function Site({
  url,
  title,
  statusCode,
}: {
  url: string;
  title?: string | undefined;
  statusCode?: number | undefined;
}) {
  const host = hostOf(url);
  const known = /^https?:\/\//i.test(url) && host;
  return (
    <p class="web-site">
      {known ? (
        <a href={url} target="_blank" rel="noopener noreferrer">
          <Seen text={title || url} />
        </a>
      ) : (
        <Seen text={(title || url).slice(0, 500)} />
      )}
      {known && <span class="muted tiny">{host}</span>}
      {statusCode !== undefined && <span class={`chip ${statusCode < 400 ? "ok" : "bad"}`}>{statusCode}</span>}
    </p>
  );
}
