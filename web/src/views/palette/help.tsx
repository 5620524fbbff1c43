/** The keys of the page, as they are registered now, and those that belong to fields. */
import { type Shortcut, shortcuts } from "../../app/shortcuts";
import { Dialog } from "../../ui/dialog";
import { Keys } from "../../ui/keys";

type Line = Pick<Shortcut, "keys" | "label">;

const GROUPS: readonly Shortcut["group"][] = ["Everywhere", "Sessions", "Session", "Approvals", "Composer"];
/** Keys that fields handle themselves, so they are in no registry, and those of what is not always there. */
const OWN: Partial<Record<Shortcut["group"], readonly Line[]>> = {
  Sessions: [
    { keys: "ArrowDown", label: "Next in the list" },
    { keys: "ArrowUp", label: "Previous in the list" },
    { keys: "Enter", label: "Open it" },
  ],
  Approvals: [
    { keys: "a", label: "Allow once" },
    { keys: "d", label: "Deny" },
  ],
  Composer: [
    { keys: "Enter", label: "Send" },
    { keys: "shift+Enter", label: "New line" },
  ],
};

/** Each key once, in the order of the groups. */
export function tableOf(registered: readonly Shortcut[]): { group: string; lines: Line[] }[] {
  return GROUPS.map((group) => {
    const own = registered.filter((one) => one.group === group).toReversed();
    const known = new Set(own.map((one) => one.keys));
    const lines = [...own, ...(OWN[group] ?? []).filter((one) => !known.has(one.keys))];
    return { group, lines: [...new Map(lines.map((line) => [line.keys + line.label, line])).values()] };
  }).filter(({ lines }) => lines.length);
}

export function Help({ close }: { close(): void }) {
  return (
    <Dialog title="Keys" close={close}>
      <div class="help">
        {tableOf(shortcuts.value).map(({ group, lines }) => (
          <table key={group}>
            <caption>{group}</caption>
            <tbody>
              {lines.map(({ keys, label }) => (
                <tr key={keys + label}>
                  <th scope="row">{label}</th>
                  <td>
                    <Keys keys={keys} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      </div>
      <p class="small muted">Single keys do nothing while you type.</p>
    </Dialog>
  );
}
