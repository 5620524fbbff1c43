/** What a device may do, in words. */
import type { Scope } from "../../app/hub";
import { Icon } from "../../ui/icon";

export const SCOPES: readonly Scope[] = ["read", "prompt", "approve", "admin"];

/** One word for a chip, and what it means. */
export const MAY: Readonly<Record<Scope, readonly [word: string, about: string]>> = {
  read: ["watch", "see sessions and what happens in them"],
  prompt: ["prompt", "start sessions and send prompts"],
  approve: ["approve", "decide what agents ask for"],
  admin: ["manage", "manage devices, policies and the hub"],
};

const isScope = (scope: string): scope is Scope => (SCOPES as readonly string[]).includes(scope);

/** What it may do, a line each. */
export function Rights({ scopes }: { scopes: readonly string[] }) {
  return (
    <ul class="rights">
      {scopes.filter(isScope).map((scope) => (
        <li key={scope}>
          <Icon name="check" size={14} />
          {MAY[scope][1]}
        </li>
      ))}
    </ul>
  );
}

/** The same in short. */
export const rightsOf = (scopes: readonly string[]): string =>
  scopes.map((scope) => (isScope(scope) ? MAY[scope][0] : scope)).join(", ");
