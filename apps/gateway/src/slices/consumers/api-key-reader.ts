// Tested by ../../../test/consumers.test.ts
import type { RequestContext } from "#request/context.ts";
import type { ApiKeys } from "./api-keys.ts";
import type { CredentialReader, Recognition } from "./authentication-gate.ts";
import { API_KEY_FIELD, type PresentedCredentials } from "./presented-credentials.ts";

const NONE: Recognition = { kind: "none" };
const INVALID: Recognition = { kind: "invalid" };

/** Reads `X-API-Key`, which is the gateway's own field: wherever consumers are known, a key must be one of theirs. */
export class ApiKeyReader implements CredentialReader {
  readonly hides: ReadonlySet<string> | undefined;
  readonly #keys: ApiKeys;

  constructor(keys: ApiKeys, hides: ReadonlySet<string> | undefined) {
    this.#keys = keys;
    this.hides = hides;
  }

  read(_request: RequestContext, { apiKey, repeated }: PresentedCredentials): Recognition {
    if (apiKey === undefined) return NONE;
    if (repeated.has(API_KEY_FIELD)) return INVALID;
    const identity = this.#keys.find(apiKey);
    return identity === undefined ? INVALID : { kind: "consumer", identity };
  }
}
