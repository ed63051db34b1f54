import type { RequestContext } from "#request/context.ts";
import type { ApiKeys } from "./api-keys.ts";
import { INVALID, recognitionOf, type CredentialReader, type Recognition } from "./credential-reader.ts";
import { API_KEY_FIELD, type PresentedCredentials } from "./presented-credentials.ts";

/** Reads `X-API-Key`, which is the gateway's own field: wherever consumers are known, a key must be one of theirs. */
export class ApiKeyReader implements CredentialReader {
  readonly fields = [API_KEY_FIELD];
  readonly isForwarded = false;
  readonly #keys: ApiKeys;

  constructor(keys: ApiKeys) {
    this.#keys = keys;
  }

  claims({ apiKey }: PresentedCredentials): boolean {
    return apiKey !== undefined;
  }

  read(_request: RequestContext, { apiKey, repeated }: PresentedCredentials): Recognition {
    if (apiKey === undefined || repeated?.has(API_KEY_FIELD) === true) return INVALID;
    return recognitionOf(this.#keys.find(apiKey));
  }
}
