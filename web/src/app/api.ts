/** Requests to the hub that are answered once. What it refuses is thrown, in its own words. */
import { isObject } from "../model/json";
import type { Failed, Json } from "../model/wire.gen";
import type { Ports, Request } from "../link/ports";

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly failure: Failed,
  ) {
    super(failure.message);
  }
}

const UNREACHABLE: Failed = { code: "unreachable", message: "The hub cannot be reached", recoverable: true };

export class Api {
  readonly #fetch: Ports["fetch"];

  constructor(fetch: Ports["fetch"]) {
    this.#fetch = fetch;
  }

  /** Paths are relative: `sessions`, `approvals/ID`. Rejects with Refused, status 0 when there is no answer. */
  async call<Answer = Json>(method: NonNullable<Request["method"]>, path: string, body?: Json): Promise<Answer> {
    const request: Request = body === undefined ? { method } : { method, body };
    const answer = await this.#fetch(path, request).catch(() => {
      throw new Refused(0, UNREACHABLE);
    });
    if (answer.status < 300) return answer.body as Answer;
    const told = isObject(answer.body) ? answer.body["error"] : undefined;
    throw new Refused(answer.status, isObject(told) ? (told as unknown as Failed) : strange(answer.status));
  }

  get<Answer = Json>(path: string): Promise<Answer> {
    return this.call<Answer>("GET", path);
  }

  post<Answer = Json>(path: string, body: Json = {}): Promise<Answer> {
    return this.call<Answer>("POST", path, body);
  }
}

const strange = (status: number): Failed => ({
  code: `http_${status}`,
  message: `The hub answered with status ${status}`,
  recoverable: true,
});

/** Parts of a path, each encoded: `path("sessions", id, "queue")`. */
export const path = (...parts: string[]): string => parts.map(encodeURIComponent).join("/");
