/** The kind of error; `message` describes it in a sentence. */
export type AuthorityErrorCode =
  | "unreadable-certificate"
  | "unreadable-key"
  | "unsupported-key"
  | "key-mismatch"
  | "not-a-ca"
  | "expired"
  | "invalid-name"
  | "invalid-option";

export class AuthorityError extends Error {
  readonly code: AuthorityErrorCode;

  constructor(code: AuthorityErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AuthorityError";
    this.code = code;
  }
}
