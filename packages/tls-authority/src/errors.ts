/** What was wrong; `message` says the same as a sentence for people. */
export type AuthorityErrorCode =
  | "unreadable-certificate"
  | "unreadable-key"
  | "unsupported-key"
  | "key-mismatch"
  | "not-a-ca"
  | "expired"
  | "invalid-name"
  | "invalid-option";

/** The one error type of this package. */
export class AuthorityError extends Error {
  readonly code: AuthorityErrorCode;

  constructor(code: AuthorityErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AuthorityError";
    this.code = code;
  }
}
