/**
 * The state of a session while it is folded, and the tables by which events find what they are about.
 *
 * Items have the shapes of the wire and are changed in place; what is left out there when it has its default is
 * undefined here. Whoever changes an item says so (`touch`, `grow`), or the page goes on showing the old one. The
 * lookup tables hold nothing that the fields do not say: they are rebuilt from a snapshot.
 */
import { CHATTER_LIMIT } from "./tables.gen";
import type {
  Approval,
  Compaction,
  FileState,
  Message,
  Plan,
  Question,
  SessionItem,
  SessionState,
  SubAgent,
  Thought,
  ToolCall,
} from "./wire.gen";

/** Paths and ids are chosen by agents: a map keeps their order, and knows no prototype. */
export type Fields = Omit<SessionState, "files" | "subAgents"> & {
  files: Map<string, FileState>;
  subAgents: Map<string, SubAgent>;
};

export type Ask = Approval | Question;
export type Open = Message | Thought | ToolCall;

export const ended = (call: ToolCall): boolean => call.status !== "pending" && call.status !== "executing";
export const pending = (ask: Ask): boolean =>
  ask.type === "approval" ? ask.resolvedBy === undefined : ask.outcome === undefined;

/** What happened since somebody last looked. */
export class Changes {
  /** Changed items. A text: nothing but this was added at the end of its text; null: look at all of it. */
  readonly items = new Map<SessionItem, string | null>();
  /** Items were added or dropped. */
  order = false;
  /** Something that is no item. */
  head = false;
}

/** Where to find things. Ids may be used again: each table has the last item of an id. */
export class Lookup {
  readonly calls = new Map<string, ToolCall>();
  readonly messages = new Map<string, Message>();
  readonly thoughts = new Map<string, Thought>();
  readonly open = new Set<Open>();
  readonly approvals = new Map<string, Approval>();
  readonly questions = new Map<string, Question>();
  readonly pending = new Set<Ask>();
  readonly plans = new Map<string, Plan>();
  readonly compactions = new Map<string, Compaction>();
  readonly agents = new Map<string, SubAgent>();
  chatter = 0;

  add(item: SessionItem): void {
    switch (item.type) {
      case "tool_call":
        this.calls.set(item.toolCallId, item);
        if (!ended(item)) this.open.add(item);
        break;
      case "message":
        this.messages.set(messageKey(item.role, item.messageId), item);
        if (!item.done) this.open.add(item);
        break;
      case "thought":
        this.thoughts.set(item.messageId, item);
        if (!item.done) this.open.add(item);
        break;
      case "approval":
        this.approvals.set(item.requestId, item);
        if (pending(item)) this.pending.add(item);
        break;
      case "question":
        this.questions.set(item.questionId, item);
        if (pending(item)) this.pending.add(item);
        break;
      case "plan":
        this.plans.set(planKey(item.turnId, item.planId), item);
        break;
      case "compaction":
        this.compactions.set(item.compactionId, item);
        break;
      case "notification":
      case "custom":
        this.chatter += 1;
        break;
    }
  }
}

/** Ids may repeat from one role to another. */
export const messageKey = (role: string, id: string): string => `${role}\n${id}`;
export const planKey = (turnId: string | undefined, planId: string): string =>
  turnId === undefined ? `\n${planId}` : `.${turnId}\n${planId}`;

export class State {
  readonly fields: Fields;
  readonly lookup = new Lookup();
  #changes = new Changes();

  constructor(fields: Fields = empty()) {
    this.fields = fields;
    for (const item of fields.items) this.lookup.add(item);
    for (const agent of fields.subAgents.values()) {
      if (agent.endedAt === undefined) this.lookup.agents.set(agent.subAgentId, agent);
    }
  }

  /** The open turn's id, which a new item gets. */
  get turnId(): string | undefined {
    const turn = this.fields.turn;
    return turn?.open ? turn.turnId : undefined;
  }

  get pendingApprovals(): Approval[] {
    return [...this.lookup.pending].filter((ask) => ask.type === "approval");
  }

  get pendingQuestions(): Question[] {
    return [...this.lookup.pending].filter((ask) => ask.type === "question");
  }

  /** What changed since the last time this was asked. */
  takeChanges(): Changes {
    const changes = this.#changes;
    this.#changes = new Changes();
    return changes;
  }

  add<Item extends SessionItem>(item: Item): Item {
    this.fields.items.push(item);
    this.lookup.add(item);
    this.touch(item);
    this.#changes.order = true;
    if (this.lookup.chatter > 2 * CHATTER_LIMIT) this.#dropChatter();
    return item;
  }

  touch(item: SessionItem): void {
    this.#changes.items.set(item, null);
  }

  /** Text was added at the end of the item's text, and nothing else changed. */
  grow(item: SessionItem, text: string): void {
    const known = this.#changes.items.get(item);
    if (known !== null) this.#changes.items.set(item, (known ?? "") + text);
  }

  touchHead(): void {
    this.#changes.head = true;
  }

  /** The item ended, or was answered. */
  closed(item: Open | Ask): void {
    this.lookup.open.delete(item as Open);
    this.lookup.pending.delete(item as Ask);
    this.touch(item);
  }

  /** Let go of the older half. Done at every so many, or each new notification would cost a walk of all items. */
  #dropChatter(): void {
    let drop = this.lookup.chatter - CHATTER_LIMIT;
    this.fields.chatterDropped += drop;
    this.fields.items = this.fields.items.filter(
      (item) => !(drop > 0 && (item.type === "notification" || item.type === "custom") && drop--),
    );
    this.lookup.chatter = CHATTER_LIMIT;
  }
}

/** A session before its first event. */
export function empty(): Fields {
  return {
    id: "",
    seq: 0,
    status: "idle",
    agent: "",
    title: null,
    model: null,
    mode: null,
    planMode: false,
    projectPath: "",
    projectName: "",
    workingDirectory: "",
    startedAt: "",
    updatedAt: "",
    turn: null,
    turns: 0,
    turnsEnded: [],
    todos: [],
    usage: null,
    cost: null,
    contextWindow: null,
    rateLimit: null,
    progress: null,
    environment: null,
    modes: [],
    models: [],
    configOptions: [],
    availableCommands: [],
    files: new Map(),
    subAgents: new Map(),
    chatterDropped: 0,
    items: [],
  };
}
