/** The agents to choose from: those that can be started, and how to get the others. */
import { Copy } from "../../ui/copy";

export interface Agent {
  name: string;
  title: string;
  state: string;
  installed: boolean;
  install?: string;
  problem?: string;
}

/** Fetched when it is started for the first time, so it can be chosen. */
const isReady = (agent: Agent): boolean => agent.installed || agent.state === "on demand";

/** The one that was used last, if it can still be started; else the first that can. */
export function firstChoice(agents: readonly Agent[], last: string): string {
  const ready = agents.filter(isReady);
  return (ready.find((one) => one.name === last) ?? ready[0])?.name ?? "";
}

interface Props {
  agents: readonly Agent[] | null;
  value: string;
  set(name: string): void;
}

export function Agents({ agents, value, set }: Props) {
  if (!agents) return <p class="new-bone" role="status" aria-label="Loading the agents" />;
  const others = agents.filter((one) => !isReady(one));
  return (
    <>
      <div class="new-agents">
        {agents.filter(isReady).map((agent) => (
          <label key={agent.name} class="new-agent">
            <input
              type="radio"
              name="new-agent"
              value={agent.name}
              checked={agent.name === value}
              onChange={() => set(agent.name)}
            />
            <span>
              {agent.title}
              {agent.state === "on demand" && <span class="tiny muted"> fetched on first use</span>}
            </span>
          </label>
        ))}
      </div>
      {others.length > 0 && (
        <details class="new-others small">
          <summary>{others.length === 1 ? "1 agent is" : `${others.length} agents are`} not installed</summary>
          <ul>
            {others.map((agent) => (
              <li key={agent.name} aria-disabled="true">
                <span>{agent.title}</span>
                <Hint agent={agent} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Hint({ agent: { install, problem } }: { agent: Agent }) {
  if (problem) return <span class="muted">{problem}</span>;
  if (!install) return null;
  return (
    <span class="new-install">
      <code class="muted">{install}</code>
      <Copy text={install} label="Copy the command" />
    </span>
  );
}
