/** The rules that the hub has stored, in words, each with a button to revoke it. */
import { useEffect, useState } from "preact/hooks";
import { path } from "../../app/api";
import { useHub } from "../../app/context";
import { words } from "../../app/hub";
import { nameOf, type SessionRow } from "../../app/rows";
import { attempt } from "../../app/toasts";
import { Icon } from "../../ui/icon";
import { Seen, Sentence } from "../approvals/hidden";
import { moment } from "../../ui/time";
import { since } from "./naming";

export interface Rule {
  id: string;
  active: boolean;
  effect: "allow" | "deny";
  scope: "session" | "project" | "everywhere";
  scopeKey: string;
  rule: { subject?: string; pattern?: string | null; toolName?: string };
  /** The reach of the rule in words; rules of older hubs have none. */
  text?: string;
  /** It covers a tool with any arguments, although "always" once promised less. */
  isWide?: boolean;
  created: string;
  expires: string | null;
  hits: number;
  /** The device whose decision it comes from; null for rules of older hubs. */
  madeBy?: string | null;
}

const VERBS: Readonly<Record<string, string>> = {
  commands: "run",
  reads: "read",
  writes: "change",
  searches: "search",
  tools: "use",
};

export function Rules() {
  const hub = useHub();
  const [rules, setRules] = useState<Rule[] | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const live = hub.status.value.phase === "live";
  useEffect(() => {
    if (rules && !live) return;
    hub.api.get<{ rules: Rule[] }>("rules").then(
      (found) => {
        setRules(found.rules.toReversed());
        setTrouble(null);
      },
      (error: unknown) => setTrouble(words(error)),
    );
  }, [live]);
  const put = (rule: Rule) => setRules((now) => now && now.map((one) => (one.id === rule.id ? rule : one)));
  const drop = (id: string) => setRules((now) => now && now.filter((one) => one.id !== id));
  return (
    <section aria-label="Rules">
      <h2 class="page-section">Rules</h2>
      {trouble && (
        <p class="new-trouble bad" role="alert">
          The rules could not be listed: {trouble}.
        </p>
      )}
      {!rules && !trouble && <p class="new-bone" role="status" aria-label="Loading the rules" />}
      {rules && !rules.length && (
        <p class="muted">No rules yet. “Always…” on an approval creates one; delete it here.</p>
      )}
      <ul class="devices">
        {rules?.map((rule) => (
          <Row key={rule.id} rule={rule} changed={put} gone={() => drop(rule.id)} />
        ))}
      </ul>
    </section>
  );
}

interface RowProps {
  rule: Rule;
  changed(rule: Rule): void;
  gone(): void;
}

function Row({ rule, changed, gone }: RowProps) {
  const hub = useHub();
  const [busy, setBusy] = useState(false);
  const revoke = async () => {
    setBusy(true);
    if (await attempt("Could not revoke it", () => hub.api.call("DELETE", path("rules", rule.id)))) gone();
    setBusy(false);
  };
  const review = async (verb: "narrow" | "keep") => {
    setBusy(true);
    await attempt("Could not change it", async () =>
      changed(await hub.api.call<Rule>("POST", `${path("rules", rule.id)}/${verb}`)),
    );
    setBusy(false);
  };
  const { subject = "tools", pattern, toolName } = rule.rule;
  return (
    <li class="card device">
      <Icon name="shield" size={20} />
      <div class="device-words">
        <p class="rule-words">
          <span class={`chip ${rule.effect === "allow" ? "ok" : "bad"}`}>
            {rule.effect === "allow" ? "Allow" : "Deny"}
          </span>{" "}
          {rule.text ? (
            <Sentence text={rule.text} />
          ) : (
            <>
              {VERBS[subject] ?? "use"}{" "}
              <code>
                <Seen text={pattern ?? toolName ?? "anything"} />
              </code>
            </>
          )}
        </p>
        {rule.isWide && (
          <div class="rule-wide small">
            <span>This rule is from an earlier version and covers any arguments.</span>
            {hub.may("approve") && (
              <>
                <button type="button" class="button" disabled={busy} onClick={() => void review("narrow")}>
                  Limit to the approved arguments
                </button>
                <button type="button" class="button quiet" disabled={busy} onClick={() => void review("keep")}>
                  Keep as it is
                </button>
              </>
            )}
          </div>
        )}
        <p class="small muted">
          {where(rule, hub.rows.value)} ·{" "}
          {rule.hits === 1 ? "used once" : rule.hits ? `used ${rule.hits} times` : "not used yet"}
          {" · "}
          {rule.expires ? (
            <span title={moment(rule.expires)}>until {moment(rule.expires)}</span>
          ) : (
            `made ${since(rule.created)}`
          )}
          {rule.madeBy && ` · by ${rule.madeBy}`}
        </p>
      </div>
      {hub.may("approve") && (
        <button type="button" class="button danger" disabled={busy} onClick={() => void revoke()}>
          {busy ? "Revoking…" : "Revoke"}
        </button>
      )}
    </li>
  );
}

function where({ scope, scopeKey }: Rule, rows: ReadonlyMap<string, SessionRow> | null): string {
  if (scope === "everywhere") return "everywhere";
  if (scope === "project") return `in ${scopeKey}`;
  const row = rows?.get(scopeKey);
  return `in the session “${row ? nameOf(row) : scopeKey}”`;
}
