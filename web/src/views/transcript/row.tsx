/** One row of the transcript. It is drawn again only when it is another one. */
import type { Signal } from "@preact/signals";
import { signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Artifact, Custom, SessionItem } from "../../model/wire.gen";
import { lazily } from "../../ui/lazy";
import type { Step } from "../cards/family";
import { memo } from "../text/memo";
import { CompactionLine, FailureBanner, NotificationBanner, PlanLine } from "./banners";
import { QuestionLine } from "./decided";
import { Details } from "./details";
import type { Row } from "./layout";
import { MessageView } from "./message";
import { Run } from "./run";
import { TurnMark } from "./turn";

/** The row at which the transcript was opened, by its key, and why: the first that was not read, or one looked for. */
export interface Mark {
  key: number;
  word: string;
}

export const MarkContext = createContext<Signal<Mark | null>>(signal(null));

export const RowView = memo(({ row }: { row: Row }) => {
  const mark = useContext(MarkContext).value;
  return (
    <div class={`row row-${row.kind === "item" ? row.item.type : row.kind}`}>
      {mark?.key === row.key && (
        <p class="rule unread" role="separator">
          <span>{mark.word}</span>
        </p>
      )}
      <Inner row={row} />
    </div>
  );
});

function Inner({ row }: { row: Row }) {
  switch (row.kind) {
    case "run":
      return <Run steps={row.steps} />;
    case "details":
      return <Details items={row.items} />;
    case "turn":
      return <TurnMark {...row} />;
    case "item":
      return <ItemView item={row.item} />;
  }
}

const LazyArtifact = lazily<{ item: Artifact }>(() =>
  import("../cards/artifact").then((module) => module.ArtifactCard),
);

function ItemView({ item }: { item: Exclude<SessionItem, Step | Custom> }) {
  switch (item.type) {
    case "message":
      return <MessageView message={item} />;
    case "plan":
      return <PlanLine plan={item} />;
    case "question":
      return <QuestionLine question={item} />;
    case "notification":
      return <NotificationBanner notification={item} />;
    case "error":
      return <FailureBanner failure={item} />;
    case "compaction":
      return <CompactionLine compaction={item} />;
    case "artifact":
      return <LazyArtifact item={item} />;
    default:
      return null; // a kind of a later version
  }
}
