/** What the link needs of the world, so that tests can be the world. `browser.ts` is the real one. */
import type { Json } from "../model/wire.gen";

export interface Clock {
  /** Milliseconds; only differences count. */
  now(): number;
  /** Call back once, unless cancelled. */
  after(milliseconds: number, call: () => void): Cancel;
}

export type Cancel = () => void;

export interface SocketPort {
  send(text: string): void;
  /** Nothing is heard of it afterwards. */
  close(): void;
}

export interface SocketEvents {
  opened(): void;
  message(text: string): void;
  /** Over, whoever ended it; also when it never opened. */
  closed(code: number): void;
}

export interface Answer {
  status: number;
  /** The body, null where it is no JSON. */
  body: Json;
}

export interface Request {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  body?: Json;
  signal?: AbortSignal;
}

export interface Ports {
  clock: Clock;
  /** From 0 up to 1. */
  random(): number;
  /** Something that nobody else would choose. */
  newId(): string;
  /** Paths are relative to where the hub is served, which may be a directory of a site. */
  openSocket(path: string, events: SocketEvents): SocketPort;
  /** Rejects when there is no answer. */
  fetch(path: string, request?: Request): Promise<Answer>;
}
