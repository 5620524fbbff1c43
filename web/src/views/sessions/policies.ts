/** How much an agent may do without asking, as it is offered for a new session. */
import type { Json } from "../../model/wire.gen";

export interface PolicyChoice {
  name: string;
  label: string;
  about: string;
  /** Undefined: the hub's own default holds. */
  policy?: Json;
}

export const POLICIES: readonly [PolicyChoice, ...PolicyChoice[]] = [
  {
    name: "ask",
    label: "Ask for everything",
    about: "You decide about each step that the agent asks for.",
    policy: {},
  },
  {
    name: "reads",
    label: "Allow reads",
    about: "Reading and searching inside the directory need no asking; credentials are always asked about.",
    policy: { autoApprove: { reads: true, searches: true } },
  },
  {
    name: "edits",
    label: "Allow reads and edits",
    about: "Also writing and editing files inside the directory. Commands, deleting and moving are still asked about.",
    policy: { autoApprove: { reads: true, searches: true, writes: true } },
  },
  {
    name: "default",
    label: "As the hub is set up",
    about: "What the hub's configuration says for sessions that say nothing themselves.",
  },
];
