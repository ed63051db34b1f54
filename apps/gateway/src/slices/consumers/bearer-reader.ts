// Tested by ../../../test/consumers/tokens.test.ts
import type { RequestContext } from "#request/context.ts";
import { INVALID, type CredentialReader, type Recognition } from "./credential-reader.ts";
import { AUTHORIZATION_FIELD, type PresentedCredentials } from "./presented-credentials.ts";
import type { TokenVerifier } from "./token-verifier.ts";

/** Reads `Authorization: Bearer` (RFC 6750) with a JSON Web Token, which upstreams get too: they may want its claims. */
export class BearerReader implements CredentialReader {
  readonly fields = [AUTHORIZATION_FIELD];
  readonly isForwarded = true;
  readonly #verifier: TokenVerifier;

  constructor(verifier: TokenVerifier) {
    this.#verifier = verifier;
  }

  claims({ authorization, repeated }: PresentedCredentials): boolean {
    return authorization?.scheme === "bearer" || repeated?.has(AUTHORIZATION_FIELD) === true;
  }

  read(
    _request: RequestContext,
    { authorization, repeated }: PresentedCredentials,
  ): Recognition | Promise<Recognition> {
    if (authorization === undefined || repeated?.has(AUTHORIZATION_FIELD) === true) return INVALID;
    return this.#verifier.verify(authorization.rest);
  }
}
