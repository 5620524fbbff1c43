/**
 * Forms that agents ask for: JSON Schema of one level as fields, and what was put into them as values or as words about
 * what is wrong.
 *
 * Schemas come from agents and may be anything: a field of a kind that is not known here takes JSON. Their patterns are not
 * tried, because one can be written that a browser never finishes.
 */
import { isObject, type JsonObject, textOf } from "../../model/json";
import type { Json } from "../../model/wire.gen";

export type Kind = "text" | "number" | "integer" | "boolean" | "choice" | "choices" | "json";

export interface Choice {
  value: Json;
  title: string;
}

export interface Field {
  name: string;
  title: string;
  description: string;
  kind: Kind;
  required: boolean;
  choices: Choice[];
  initial: Raw;
  format: string;
  schema: JsonObject;
}

/** What a field holds while it is filled in: numbers as they are typed, choices by their places. */
export type Raw = string | boolean | number[];
export type Raws = Readonly<Record<string, Raw>>;

export function fieldsOf(form: JsonObject): Field[] {
  const properties = isObject(form["properties"]) ? form["properties"] : {};
  const required = Array.isArray(form["required"]) ? form["required"] : [];
  return Object.entries(properties).map(([name, value]) => {
    const schema = isObject(value) ? value : {};
    const items = isObject(schema["items"]) ? schema["items"] : {};
    const many = schema["type"] === "array";
    const choices = choicesOf(many ? items : schema);
    const kind = kindOf(schema, many, choices.length > 0);
    return {
      name,
      title: textOf(schema["title"]) || name,
      description: textOf(schema["description"]),
      kind,
      required: required.includes(name),
      choices,
      initial: initialOf(kind, schema["default"], choices),
      format: textOf(schema["format"]),
      schema,
    };
  });
}

const KINDS: Readonly<Record<string, Kind>> = {
  string: "text",
  number: "number",
  integer: "integer",
  boolean: "boolean",
};

function kindOf(schema: JsonObject, many: boolean, chosen: boolean): Kind {
  if (chosen) return many ? "choices" : "choice";
  return KINDS[textOf(schema["type"])] ?? "json";
}

function choicesOf(schema: JsonObject): Choice[] {
  const names = Array.isArray(schema["enumNames"]) ? schema["enumNames"] : [];
  for (const key of ["enum", "oneOf", "anyOf"]) {
    const values = schema[key];
    if (!Array.isArray(values)) continue;
    return values.map((value, place): Choice => {
      const told = isObject(value) && "const" in value;
      const constant = told ? (value["const"] ?? null) : value;
      return { value: constant, title: (told && textOf(value["title"])) || textOf(names[place]) || shown(constant) };
    });
  }
  return [];
}

const shown = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));

function initialOf(kind: Kind, value: Json | undefined, choices: Choice[]): Raw {
  const place = (wanted: Json) => choices.findIndex((choice) => shown(choice.value) === shown(wanted));
  if (kind === "boolean") return value === true;
  if (kind === "choices") return (Array.isArray(value) ? value : []).map(place).filter((one) => one >= 0);
  if (kind === "choice") return value === undefined || place(value) < 0 ? [] : [place(value)];
  return value === undefined || value === null ? "" : kind === "json" ? JSON.stringify(value) : shown(value);
}

export const rawOf = (field: Field, raws: Raws): Raw =>
  Object.hasOwn(raws, field.name) ? (raws[field.name] ?? field.initial) : field.initial;

export interface Checked {
  values: JsonObject;
  /** By the name of the field. */
  errors: Readonly<Record<string, string>>;
}

export function check(fields: readonly Field[], raws: Raws): Checked {
  // names are an agent's choice: no name may mean anything to the object itself
  const values = Object.create(null) as JsonObject;
  const errors = Object.create(null) as Record<string, string>;
  for (const field of fields) {
    const raw = rawOf(field, raws);
    const empty = raw === "" || (Array.isArray(raw) && !raw.length);
    if (empty) {
      if (field.required) errors[field.name] = Array.isArray(raw) ? "Choose one" : "Required";
      continue;
    }
    const error = CHECKS[field.kind](field, raw, (value) => (values[field.name] = value));
    if (error) errors[field.name] = error;
  }
  return { values, errors };
}

type Check = (field: Field, raw: Raw, take: (value: Json) => void) => string;

const numeric: Check = ({ kind, schema }, raw, take) => {
  const value = Number(raw);
  if (!Number.isFinite(value)) return "Enter a number";
  if (kind === "integer" && !Number.isInteger(value)) return "Enter a whole number";
  take(value);
  return within(value, schema, "minimum", "maximum", "");
};

const CHECKS: Readonly<Record<Kind, Check>> = {
  number: numeric,
  integer: numeric,
  boolean: (_, raw, take) => {
    take(raw === true);
    return "";
  },
  text: ({ schema }, raw, take) => {
    take(raw as string);
    return within([...(raw as string)].length, schema, "minLength", "maxLength", " characters");
  },
  choice: ({ choices }, raw, take) => {
    take(choices[(raw as number[])[0] ?? 0]?.value ?? null);
    return "";
  },
  choices: ({ choices, schema }, raw, take) => {
    take((raw as number[]).map((place) => choices[place]?.value ?? null));
    return within((raw as number[]).length, schema, "minItems", "maxItems", " choices");
  },
  json: (_, raw, take) => {
    try {
      take(JSON.parse(raw as string) as Json);
      return "";
    } catch {
      return "Enter JSON";
    }
  },
};

function within(value: number, schema: JsonObject, low: string, high: string, unit: string): string {
  const [least, most] = [schema[low], schema[high]];
  if (typeof least === "number" && value < least) return `At least ${least}${unit}`;
  if (typeof most === "number" && value > most) return `At most ${most}${unit}`;
  return "";
}
