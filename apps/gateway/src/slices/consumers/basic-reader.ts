import type { RequestContext } from "#request/context.ts";
import type { BasicPasswords } from "./basic-passwords.ts";
import { INVALID, recognitionOf, type CredentialReader, type Recognition } from "./credential-reader.ts";
import { AUTHORIZATION_FIELD, type PresentedCredentials } from "./presented-credentials.ts";

/** Reads `Authorization: Basic` (RFC 7617). */
export class BasicReader implements CredentialReader {
  readonly fields = [AUTHORIZATION_FIELD];
  readonly isForwarded = false;
  readonly #passwords: BasicPasswords;

  constructor(passwords: BasicPasswords) {
    this.#passwords = passwords;
  }

  claims({ authorization, repeated }: PresentedCredentials): boolean {
    return authorization?.scheme === "basic" || repeated?.has(AUTHORIZATION_FIELD) === true;
  }

  read(_request: RequestContext, { authorization, repeated }: PresentedCredentials): Recognition {
    if (authorization === undefined || repeated?.has(AUTHORIZATION_FIELD) === true) return INVALID;
    return recognitionOf(this.#passwords.find(authorization.rest));
  }
}
