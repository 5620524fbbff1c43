/** A recording that can be played: the transcript as it was at a moment, and what moves the moment. */
import type { ComponentChildren } from "preact";
import { summarizeRequest } from "../../app/approvals";
import { REPLAY_KEYS, type ReplaySession } from "../../app/replay";
import { placeOf, unmarked, wordOf } from "../../app/rows";
import { useShortcuts } from "../../app/shortcuts";
import { Icon } from "../../ui/icon";
import { Shortened } from "../approvals/hidden";
import { Transcript } from "../transcript/transcript";
import { Transport } from "./transport";

/** Characters of a pending request; both ends are shown. */
const LONGEST = 200;

interface Props {
  replay: ReplaySession;
  /** What it is called where it never says itself. */
  title?: string | null | undefined;
  /** The way back, before the title. */
  lead?: ComponentChildren;
  /** Ways to elsewhere, at the end of the head. */
  children?: ComponentChildren;
}

export function Player({ replay, title, lead, children }: Props) {
  useKeys(replay);
  return (
    <div class="replay">
      <Head replay={replay} title={title} lead={lead}>
        {children}
      </Head>
      <Transcript source={replay} />
      <Asked replay={replay} />
      <Transport replay={replay} />
    </div>
  );
}

function Head({ replay, title, lead, children }: Props) {
  void replay.head.value;
  const fields = replay.session.value?.fields;
  const where = fields?.workingDirectory || fields?.projectPath || "";
  return (
    <header class="replay-head">
      {lead}
      <div class="replay-words">
        <h1 class="replay-title cut" dir="auto">
          {unmarked(title || fields?.title || fields?.projectName || "Session")}
        </h1>
        <div class="replay-beside">
          <span class="chip">
            <Icon name="clock" size={12} /> replay
          </span>
          <span class="cut" title={where}>
            {[fields?.agent, where && placed(where), fields && wordsOf(fields.status)].filter(Boolean).join(" · ")}
          </span>
        </div>
      </div>
      {children}
    </header>
  );
}

const placed = (where: string): string => Object.values(placeOf(where)).join("");

/** What was the case then; nobody is waited for now. */
const wordsOf = (status: string): string => wordOf(status).replace("waiting for you", "waiting for an answer");

/** The approvals and questions that were pending then. They cannot be answered here. */
function Asked({ replay }: { replay: ReplaySession }) {
  void replay.head.value;
  const session = replay.session.value;
  if (!session?.lookup.pending.size) return null;
  return (
    <ul class="replay-asked" aria-label="Waiting for an answer at this moment">
      {session.pendingApprovals.map((approval) => (
        <li key={`approval-${approval.seq}`}>
          <Icon name="shield" size={14} />
          <span class="replay-about">
            <Shortened text={summarizeRequest(approval, session.fields.workingDirectory)} limit={LONGEST} />
          </span>
          <span class="muted tiny">{approval.riskLevel} risk</span>
        </li>
      ))}
      {session.pendingQuestions.map((question) => (
        <li key={`question-${question.seq}`}>
          <Icon name="question" size={14} />
          <span class="replay-about">
            <Shortened text={question.question} limit={LONGEST} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function useKeys(replay: ReplaySession): void {
  useShortcuts(
    REPLAY_KEYS.map(({ keys, label, act }) => ({
      keys,
      label,
      group: "Session",
      when: () => keys !== " " || !document.activeElement?.matches(BUTTONS),
      run: () => act(replay),
    })),
  );
}

/** A space presses what is a button of some kind. */
const BUTTONS = "button, a, summary, [role=button]";
