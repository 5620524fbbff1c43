/** How an approval was decided, and by whom. Pure. */
import type { Approval } from "../../model/wire.gen";

export function said({ approved, resolvedBy, decidedBy }: Approval): string {
  if (resolvedBy === "cancelled") return "Nobody decided before the turn ended";
  if (resolvedBy === "timeout")
    return approved ? "Allowed, as nobody decided in time" : "Denied, as nobody decided in time";
  const word = approved ? "Allowed" : "Denied";
  return resolvedBy === "policy" ? `${word} by a rule` : decidedBy ? `${word} by ${decidedBy}` : word;
}
