/**
 * The fold: events in, session out; the same session that the hub folds from the same events.
 *
 * `Session.apply` costs what the event brings, however long the session is. Applying events one by one, in any number
 * of batches, or on top of a snapshot taken anywhere gives the same session.
 */
import { ASK_HANDLERS } from "./asks";
import { CALL_HANDLERS } from "./calls";
import { CUSTOM_HANDLERS, closeAll, planOf } from "./customs";
import { type EventOf, type Handlers, head } from "./handlers";
import { MESSAGE_HANDLERS } from "./messages";
import { empty, State } from "./state";
import { statusAfter } from "./status";
import { summary } from "./summary";
import type { Failed, Json, SessionEvent, SessionState, Snapshot } from "./wire.gen";

/** Nearly all events; they change one item, and neither the status nor anything else. */
const DELTAS: ReadonlySet<string> = new Set(["message:delta", "thinking:delta"]);

export class Session extends State {
  /** The session as the hub hands it out, without what events do not tell. It is owned by the fold from then on. */
  static from(snapshot: SessionState): Session {
    const blank = empty();
    const told = Object.entries(snapshot).filter(([name]) => Object.hasOwn(blank, name));
    const files = new Map(Object.entries(snapshot.files));
    const subAgents = new Map(Object.entries(snapshot.subAgents));
    return new Session({ ...blank, ...Object.fromEntries(told), files, subAgents });
  }

  /**
   * Take in one event. One whose number is not above the last was applied before and is passed over; events without a
   * number (0) always count. The event is owned by the fold from then on.
   */
  apply(given: SessionEvent): void {
    const event = HANDLERS.has(given.type) ? given : later(given);
    const fields = this.fields;
    if (event.seq > 0) {
      if (event.seq <= fields.seq) return;
      fields.seq = event.seq;
    }
    fields.id ||= event.sessionId;
    if (event.timestamp) {
      fields.startedAt ||= event.timestamp;
      fields.updatedAt = event.timestamp;
    }
    HANDLERS.get(event.type)!(this, event);
    if (DELTAS.has(event.type)) return;
    fields.status = statusAfter(fields.status, event, this.lookup.pending.size > 0, fields.turn?.open ?? null);
    this.touchHead();
  }

  /** The session as plain values, as the hub would hand it out. Later events do not change it. */
  snapshot(): Snapshot {
    const { files, subAgents, ...rest } = this.fields;
    const whole: Snapshot = {
      ...rest,
      files: Object.fromEntries(files),
      subAgents: Object.fromEntries(subAgents),
      pendingApprovals: this.pendingApprovals,
      pendingQuestions: this.pendingQuestions,
      summary: summary(this),
      itemsCount: rest.items.length,
    };
    return JSON.parse(JSON.stringify(whole)) as Snapshot;
  }
}

/** A type from a later version is kept as a custom event of namespace `unified`. */
function later(given: SessionEvent): SessionEvent {
  const { type, seq = 0, sessionId = "", timestamp = "", ...data } = given as unknown as Record<string, Json>;
  return { type: "custom", seq, sessionId, timestamp, namespace: "unified", eventName: type, data } as SessionEvent;
}

// -- what concerns the session as a whole -----------------------------------------------------------------------------

function started({ fields }: State, event: EventOf<"session:started">): void {
  fields.agent = event.agent || fields.agent;
  fields.projectPath = event.projectPath || fields.projectPath;
  fields.projectName = event.projectName || fields.projectName;
  fields.workingDirectory = event.workingDirectory || fields.workingDirectory;
  fields.model = event.model || fields.model;
  fields.environment = event.environment ?? fields.environment;
}

function environment({ fields }: State, { context }: EventOf<"environment:info">): void {
  fields.environment = context;
  fields.agent ||= context.agent.name;
  fields.projectPath = context.project.path || fields.projectPath;
  fields.projectName = context.project.name || fields.projectName;
  fields.model = context.model?.id || fields.model;
}

/** An error after which the session cannot go on is the end of everything that was open. */
function failed(state: State, event: EventOf<"session:error">): void {
  if (!event.error.recoverable) closeAll(state, "failed", event.timestamp);
  const last = state.fields.items.at(-1);
  if (last?.type === "error" && same(last.error, event.error)) {
    last.count = (last.count ?? 1) + 1;
    state.touch(last);
  } else state.add({ type: "error", ...head(state, event), error: event.error });
}

const same = (one: Failed, other: Failed): boolean =>
  one.code === other.code && one.message === other.message && one.recoverable === other.recoverable;

function notified(state: State, event: EventOf<"interaction:notification">): void {
  const { level, title, message, actionUrl } = event;
  const last = state.fields.items.at(-1);
  const again = last?.type === "notification" && last.level === level && last.title === title;
  if (again && last.message === message && last.actionUrl === actionUrl) {
    last.count = (last.count ?? 1) + 1;
    state.touch(last);
  } else state.add({ type: "notification", ...head(state, event), level, title, message, actionUrl });
}

function planMode(state: State, event: EventOf<"progress:plan_mode">): void {
  state.fields.planMode = event.active;
  state.fields.mode = event.modeId || state.fields.mode;
  if (event.plan) planOf(state, event).text = event.plan;
}

const nothing = (): void => {};

const SESSION_HANDLERS: Handlers = {
  "session:started": started,
  "session:completed": (state, event) => closeAll(state, "failed", event.timestamp),
  "session:error": failed,
  // these three say nothing but the status, which `statusAfter` gives
  "session:resumed": nothing,
  "session:paused": nothing,
  "session:status_changed": nothing,
  "environment:info": environment,
  "interaction:notification": notified,
  "progress:todo_update": (state, event) => {
    state.fields.todos = planOf(state, event).todos = event.todos;
  },
  "progress:plan_mode": planMode,
  "resource:token_usage": ({ fields }, event) => {
    fields.usage = event.cumulative;
  },
  "resource:cost": ({ fields }, event) => {
    fields.cost = event.cumulative;
  },
  "resource:context_window": ({ fields }, { used, limit, percentage }) => {
    fields.contextWindow = { used, limit, percentage };
  },
  "resource:rate_limit": ({ fields }, { retryAfter, limit, message, timestamp }) => {
    fields.rateLimit = { retryAfter, limit, message, timestamp };
  },
};

type Handler = (state: State, event: SessionEvent) => void;
const HANDLERS = new Map<string, Handler>(
  Object.entries({
    ...MESSAGE_HANDLERS,
    ...CALL_HANDLERS,
    ...ASK_HANDLERS,
    ...CUSTOM_HANDLERS,
    ...SESSION_HANDLERS,
  }) as [string, Handler][],
);
