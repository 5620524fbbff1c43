/** A new session: which agent, where, what to do, and how much it may do without asking. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { words } from "../../app/hub";
import { go } from "../../app/route";
import { isComposing } from "../../app/shortcuts";
import { read, write } from "../../app/stored";
import { Icon } from "../../ui/icon";
import { Keys } from "../../ui/keys";
import { type Agent, Agents, firstChoice } from "./agents";
import { Directory, directoryOf } from "./directory";
import { POLICIES } from "./policies";
import { check, type Field, start, startIn, type Troubles, troublesOf } from "./start";

interface Props {
  /** Where it is a dialog: what to do when it is over. */
  close?: (() => void) | undefined;
}

const LAST = "new-session";
const DRAFT = "new-session-prompt";

export function NewSession({ close }: Props) {
  const hub = useHub();
  const last = useRef(read(LAST, { agent: "", cwd: "" })).current;
  const [agents, setAgents] = useState<Agent[] | null>(null);
  const [agent, setAgent] = useState("");
  const [cwd, setCwd] = useState(last.cwd);
  const [prompt, setPrompt] = useState(() => read<string>(DRAFT, ""));
  const [title, setTitle] = useState("");
  const [policy, setPolicy] = useState(POLICIES[0].name);
  const [troubles, setTroubles] = useState<Troubles>({});
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const requestId = useRef(hub.ports.newId());

  const live = hub.status.value.phase === "live";
  useEffect(() => {
    if (agents) return;
    hub.api.get<{ agents: Agent[] }>("agents").then(
      (found) => {
        setAgents(found.agents);
        setAgent((now) => now || firstChoice(found.agents, last.agent));
        setTroubles(({ agent: _, ...others }) => others);
      },
      (error: unknown) => setTroubles({ agent: `The agents could not be listed: ${words(error)}` }),
    );
  }, [live]);
  const wished = startIn.value;
  useEffect(() => {
    if (wished === null) return;
    setCwd(wished);
    startIn.value = null;
  }, [wished]);
  // what was changed is another wish, and may be another session
  useEffect(() => {
    requestId.current = hub.ports.newId();
  }, [agent, cwd, title, policy]);

  if (!hub.may("prompt") && hub.me.value) {
    return (
      <p class="page-note">
        This device may watch, but not start sessions. Its owner can pair it anew with that right.
      </p>
    );
  }
  const submit = async () => {
    if (busy) return;
    const wish = { agent, cwd: directoryOf(cwd), title: title.trim(), prompt: prompt.trim(), policy: chosen() };
    const wrong = check(wish);
    setTroubles(wrong);
    if (Object.keys(wrong).length) return focusOn(form.current, wrong);
    setBusy(true);
    try {
      const row = await start(hub, wish, requestId.current);
      write(LAST, { agent, cwd: wish.cwd });
      write(DRAFT, null);
      close?.();
      go({ view: "session", id: row.id });
    } catch (error) {
      const told = troublesOf(error);
      setTroubles(told);
      focusOn(form.current, told);
      setBusy(false);
    }
  };
  const chosen = () => (hub.may("admin") ? POLICIES.find((one) => one.name === policy)?.policy : undefined);
  const keys = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || isComposing(event)) return;
    event.preventDefault();
    void submit();
  };
  return (
    <form
      ref={form}
      class="new"
      noValidate
      onKeyDown={keys}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Labelled field="agent" label="Agent" troubles={troubles} group>
        <Agents agents={agents} value={agent} set={setAgent} />
      </Labelled>
      <Labelled field="cwd" label="Directory" troubles={troubles}>
        <Directory id="new-cwd" value={cwd} set={setCwd} invalid={!!troubles.cwd} describedBy="new-cwd-trouble" />
      </Labelled>
      <Labelled field="prompt" label="Prompt" troubles={troubles}>
        <textarea
          id="new-prompt"
          class="field new-prompt"
          rows={5}
          value={prompt}
          placeholder="What is to be done? You can also say it later."
          onInput={(event) => {
            setPrompt(event.currentTarget.value);
            write(DRAFT, event.currentTarget.value || null);
          }}
        />
      </Labelled>
      {hub.may("admin") && (
        <Labelled field="policy" label="Approvals" troubles={troubles} group>
          <Policies value={policy} set={setPolicy} />
        </Labelled>
      )}
      <Labelled field="title" label="Title" optional troubles={troubles}>
        <input
          id="new-title"
          class="field"
          maxLength={500}
          value={title}
          placeholder="Taken from the conversation"
          onInput={(event) => setTitle(event.currentTarget.value)}
        />
      </Labelled>
      {troubles.form && (
        <p class="new-trouble bad" role="alert">
          <Icon name="warning" /> {troubles.form}
        </p>
      )}
      <footer class="new-foot">
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? "Starting…" : "Start"}
        </button>
        <span class="tiny muted new-hint">
          <Keys keys="mod+Enter" />
        </span>
      </footer>
    </form>
  );
}

function focusOn(form: HTMLFormElement | null, troubles: Troubles): void {
  const first = Object.keys(troubles)[0];
  form?.querySelector<HTMLElement>(`#new-${first}, [name="new-${first}"]:checked, [name="new-${first}"]`)?.focus();
}

interface LabelledProps {
  field: Field;
  label: string;
  optional?: boolean;
  /** It labels a group of controls rather than one. */
  group?: boolean;
  troubles: Troubles;
  children: ComponentChildren;
}

function Labelled({ field, label, optional, group, troubles, children }: LabelledProps) {
  const trouble = troubles[field];
  const name = `new-${field}`;
  const head = (
    <>
      {label} {optional && <span class="muted">(optional)</span>}
    </>
  );
  return (
    <div class="new-field" {...(group && { role: "group", "aria-labelledby": `${name}-label` })}>
      {group ? (
        <span class="new-label" id={`${name}-label`}>
          {head}
        </span>
      ) : (
        <label class="new-label" for={name}>
          {head}
        </label>
      )}
      {children}
      <p id={`${name}-trouble`} class="new-trouble bad small" role="alert" hidden={!trouble}>
        {trouble}
      </p>
    </div>
  );
}

function Policies({ value, set }: { value: string; set(name: string): void }) {
  return (
    <div class="new-policies">
      {POLICIES.map(({ name, label, about }) => (
        <label key={name} class="new-policy">
          <input type="radio" name="new-policy" value={name} checked={name === value} onChange={() => set(name)} />
          <span>
            {label}
            <span class="small muted">{about}</span>
          </span>
        </label>
      ))}
    </div>
  );
}
