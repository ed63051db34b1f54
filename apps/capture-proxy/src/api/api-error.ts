import { type ErrorCode, ERRORS } from "@headworks/capture-contract";

/** A problem with one field; the path is like `body/pattern`. */
export interface ErrorDetail {
  readonly path: string;
  readonly message: string;
}

/** An expected refusal. Its code determines the status; its message is shown to the caller. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly details: readonly ErrorDetail[] | undefined;
  /** Additional header fields of the response. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    message?: string,
    options: Partial<Pick<ApiError, "details" | "headers" | "cause">> = {},
  ) {
    super(message ?? ERRORS[code].message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ApiError";
    this.code = code;
    this.details = options.details;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return ERRORS[this.code].status;
  }
}

/**
 * Throws 404 `<Thing> not found`; for `return notFound(…)` at the end of a handler. The id becomes the error's cause, not
 * part of the message.
 */
export function notFound(thing: string, id?: string): never {
  const sentence = `${thing.charAt(0).toUpperCase()}${thing.slice(1)} not found`;
  throw new ApiError("NOT_FOUND", sentence, id === undefined ? {} : { cause: id });
}

/** A refusal with field problems; the message contains the first one. */
export function validationError(details: readonly ErrorDetail[]): ApiError {
  const [first] = details;
  const message = first === undefined ? undefined : `${first.path}: ${first.message}`;
  return new ApiError("VALIDATION_ERROR", message, { details });
}

/**
 * Runs a change of settings for an operation whose body is a part of them: paths of errors that begin with `prefix`, below
 * the body, are named as in that operation.
 */
export function changeSettings(prefix: string, change: () => void): void {
  try {
    change();
  } catch (error) {
    if (!(error instanceof ApiError) || error.details === undefined) throw error;
    throw validationError(
      error.details.map(({ path, message }) => ({ path: path.replace(`body/${prefix}`, "body/"), message })),
    );
  }
}
