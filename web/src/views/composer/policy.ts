/** A session's policy in words: what is allowed, and what is denied, without asking. */
import { isObject } from "../../model/json";
import type { Json } from "../../model/wire.gen";

/** Empty for one that asks about everything. */
export function policyWords(policy: Record<string, Json> | null): string {
  const [allowed, denied] = [side(policy?.["autoApprove"]), side(policy?.["deny"])];
  const parts = [allowed && `Allowed without asking: ${allowed}`, denied && `Denied without asking: ${denied}`];
  return parts.filter(Boolean).join(". ");
}

function side(rules: Json | undefined): string {
  if (!isObject(rules)) return "";
  return Object.entries(rules)
    .flatMap(([subject, rule]) => {
      if (rule === true) return [`all ${subject}`];
      return Array.isArray(rule) && rule.length ? [`${subject} ${rule.join(", ")}`] : [];
    })
    .join("; ");
}
