import { ADMIN_ERRORS, type AdminErrorCode, type Issue } from "@headworks/gateway-contract";

/** An error response of the admin API, thrown by operations. */
export class AdminError extends Error {
  readonly code: AdminErrorCode;
  readonly issues: readonly Issue[] | undefined;

  constructor(code: AdminErrorCode, message?: string, options: { issues?: readonly Issue[]; cause?: unknown } = {}) {
    super(message ?? ADMIN_ERRORS[code].message, { cause: options.cause });
    this.code = code;
    this.issues = options.issues;
  }

  get status(): number {
    return ADMIN_ERRORS[this.code].status;
  }
}
