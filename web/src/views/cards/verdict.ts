/** How an approval was decided, and by whom. Pure. */
import type { Approval } from "../../model/wire.gen";

export function describeVerdict({ approved, resolvedBy, decidedBy, reason }: Approval): string {
  if (resolvedBy === "cancelled") return reason ? "Cancelled" : "Cancelled with the turn";
  const word = approved ? "Allowed" : "Denied";
  if (resolvedBy === "timeout") return `${word}: no decision in time`;
  return resolvedBy === "policy" ? `${word} by a rule` : decidedBy ? `${word} by ${decidedBy}` : word;
}
