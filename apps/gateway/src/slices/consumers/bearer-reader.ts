import type { RequestContext } from "#request/context.ts";
import { INVALID, type CredentialReader, type Recognition } from "./credential-reader.ts";
import { AUTHORIZATION_FIELD, type PresentedCredentials } from "./presented-credentials.ts";
import type { TokenIntrospection } from "./token-introspection.ts";
import type { TokenVerifier } from "./token-verifier.ts";

/**
 * Reads `Authorization: Bearer` (RFC 6750): JSON Web Tokens of known issuers are verified here, others are asked about.
 * Upstreams get them too: they may want their claims.
 */
export class BearerReader implements CredentialReader {
  readonly fields = [AUTHORIZATION_FIELD];
  readonly isForwarded = true;
  readonly #verifier: TokenVerifier | undefined;
  readonly #introspection: TokenIntrospection | undefined;

  constructor(verifier: TokenVerifier | undefined, introspection: TokenIntrospection | undefined) {
    this.#verifier = verifier;
    this.#introspection = introspection;
  }

  claims({ authorization, repeated }: PresentedCredentials): boolean {
    return authorization?.scheme === "bearer" || repeated?.has(AUTHORIZATION_FIELD) === true;
  }

  read(
    _request: RequestContext,
    { authorization, repeated }: PresentedCredentials,
  ): Recognition | Promise<Recognition> {
    if (authorization === undefined || repeated?.has(AUTHORIZATION_FIELD) === true) return INVALID;
    const token = authorization.rest;
    if (this.#introspection === undefined) return this.#verifier?.verify(token) ?? INVALID;
    const keys = this.#verifier?.keysOf(token) ?? "none";
    if (this.#verifier === undefined || keys === "none") return this.#introspection.recognise(token);
    const verified = this.#verifier.verify(token);
    // Keys of its own issuer have the last word; others may just not be those that it was signed with.
    return keys === "own" ? verified : this.#unlessInvalid(verified, this.#introspection, token);
  }

  async #unlessInvalid(
    verified: Recognition | Promise<Recognition>,
    introspection: TokenIntrospection,
    token: string,
  ): Promise<Recognition> {
    const recognition = await verified;
    return recognition.kind === "invalid" ? await introspection.recognise(token) : recognition;
  }
}
