/** What can be chosen in a session: modes, models and the agent's other options, in one shape. */
import { isObject, type JsonObject, textOf } from "../../model/json";
import type { Json, SessionState } from "../../model/wire.gen";

export interface Choosable {
  id: string;
  name: string;
  about: string;
  value: string | boolean;
  /** Empty for one that is on or off. */
  options: { value: string; name: string; about: string; group: string }[];
  command(value: string | boolean): { command: string; [field: string]: Json };
}

type Offered = Pick<SessionState, "configOptions" | "modes" | "models" | "mode" | "model">;

/** Modes and models that are options as well are shown once, as options. */
export function choosable(fields: Offered): Choosable[] {
  const options = fields.configOptions.filter(isObject).flatMap(optionOf);
  const has = (kind: string) => options.some(({ category }) => category === kind);
  const modes = has("mode") ? [] : listed("mode", "Mode", fields.modes, fields.mode, "id");
  const models = has("model") ? [] : listed("model", "Model", fields.models, fields.model, "modelId");
  const all = [...modes, ...models, ...options];
  return all.sort((one, other) => rank(one.category) - rank(other.category));
}

type Ranked = Choosable & { category: string };

const FIRST = ["mode", "model"];
const rank = (category: string): number => (FIRST.includes(category) ? FIRST.indexOf(category) : FIRST.length);

function optionOf(option: JsonObject): Ranked[] {
  const id = textOf(option["id"]);
  const value = option["currentValue"];
  const isSwitch = typeof value === "boolean";
  const options = isSwitch ? [] : valuesOf(option["options"]);
  if (!id || (!isSwitch && (typeof value !== "string" || !options.length))) return [];
  return [
    {
      id,
      category: textOf(option["category"]) || id,
      name: textOf(option["name"]) || id,
      about: textOf(option["description"]),
      value: value as string | boolean,
      options,
      command: (chosen) => ({ command: "set_config_option", optionId: id, value: chosen }),
    },
  ];
}

/** Also where they are in groups. */
function valuesOf(offered: Json | undefined, group = ""): Choosable["options"] {
  return (Array.isArray(offered) ? offered : []).filter(isObject).flatMap((one) => {
    if (Array.isArray(one["options"])) return valuesOf(one["options"], textOf(one["name"]) || textOf(one["group"]));
    const value = textOf(one["value"]);
    return value ? [{ value, name: textOf(one["name"]) || value, about: textOf(one["description"]), group }] : [];
  });
}

function listed(kind: "mode" | "model", name: string, offered: Json[], current: string | null, key: string): Ranked[] {
  const options = offered.filter(isObject).flatMap((one) => {
    const value = textOf(one[key]);
    return value ? [{ value, name: textOf(one["name"]) || value, about: textOf(one["description"]), group: "" }] : [];
  });
  if (!options.length) return [];
  const command = (value: string | boolean) => ({ command: `set_${kind}`, [`${kind}Id`]: value });
  return [{ id: kind, category: kind, name, about: "", value: current ?? "", options, command }];
}
