/** Reading fields out of any JSON value without trusting its type. */
import type { Json } from "./wire.gen";

export type JsonObject = { [key: string]: Json };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** A field that is the object's own: `constructor` in an agent's JSON is data. */
export const fieldOf = (object: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined;

/** The first value that is there and not null. */
export function first(object: JsonObject, keys: readonly string[]): Json | undefined {
  for (const key of keys) {
    const value = fieldOf(object, key);
    if (value !== undefined && value !== null) return value;
  }
  return undefined;
}

/** Whether there is anything in it: empty lists and objects count as nothing, as an empty text does. */
export const filled = (value: Json | undefined): boolean =>
  Array.isArray(value) ? value.length > 0 : isObject(value) ? Object.keys(value).length > 0 : Boolean(value);
