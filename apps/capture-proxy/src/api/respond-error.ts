import { STATUS_CODES } from "node:http";
import { type ApiErrorBody, type ErrorCode, ERRORS } from "@headworks/capture-contract";
import { ApiError } from "./api-error.ts";

/** A refusal or failure as HTTP: status, body and fields. */
export interface ErrorResponse {
  readonly status: number;
  readonly body: ApiErrorBody;
  readonly headers: Readonly<Record<string, string>>;
  /** An internal error, to be logged. */
  readonly isInternal: boolean;
}

/** Converts an error to HTTP. An unexpected one becomes 500 `INTERNAL` without details. */
export function errorResponse(error: unknown): ErrorResponse {
  if (error instanceof ApiError) {
    return { ...refusalResponse(error.code, error.message, error.details), headers: error.headers };
  }
  const known = fromStore(error) ?? fromFramework(error);
  return known ?? { ...refusalResponse("INTERNAL"), isInternal: true };
}

export function refusalResponse(
  code: ErrorCode,
  message: string = ERRORS[code].message,
  details?: ApiError["details"],
): ErrorResponse {
  const { status } = ERRORS[code];
  const repeated = status === 401 || status === 403 ? { message } : {};
  const listed =
    details === undefined ? {} : { details: details.map(({ path, message: text }) => ({ path, message: text })) };
  return { status, body: { error: message, code, ...repeated, ...listed }, headers: {}, isInternal: false };
}

const FRAMEWORK: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_BAD_URL: ["BAD_REQUEST", "The path is not valid percent-encoding"],
  FST_ERR_CTP_BODY_TOO_LARGE: ["PAYLOAD_TOO_LARGE", ERRORS.PAYLOAD_TOO_LARGE.message],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["BAD_REQUEST", "The body does not have the announced length"],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["UNSUPPORTED_MEDIA_TYPE", ERRORS.UNSUPPORTED_MEDIA_TYPE.message],
  FST_STATIC_FORBIDDEN_PATH: ["NOT_FOUND", "There is nothing at this path"],
  ECONNRESET: ["CANCELLED", ERRORS.CANCELLED.message],
};

/** Errors of the store by name: they cross threads and lose their classes. */
const STORE: Readonly<Record<string, ErrorCode>> = {
  CursorError: "VALIDATION_ERROR",
  FilterError: "VALIDATION_ERROR",
  ImportRefusedError: "BAD_REQUEST",
  ReaderBusyError: "SERVICE_UNAVAILABLE",
  StorageError: "CORE_DATABASE",
  CancelledError: "CANCELLED",
  AbortError: "CANCELLED",
};

function fromStore(error: unknown): ErrorResponse | undefined {
  if (!(error instanceof Error) || !Object.hasOwn(STORE, error.name)) return undefined;
  const code = STORE[error.name];
  return code && refusalResponse(code, error.message);
}

function fromFramework(error: unknown): ErrorResponse | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  // A full disk, a lock, a damaged file: the caller may retry, and the log has the reason.
  if (code === "ERR_SQLITE_ERROR") return { ...refusalResponse("CORE_DATABASE"), isInternal: true };
  const entry = typeof code === "string" ? FRAMEWORK[code] : undefined;
  return entry && refusalResponse(...entry);
}

/** The bytes of a response without an HTTP response object, for malformed requests and refused upgrades. */
export function rawResponse({ status, body }: ErrorResponse, headers: Readonly<Record<string, string>>): string {
  const text = JSON.stringify(body);
  const fields = {
    ...headers,
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": String(Buffer.byteLength(text)),
    Connection: "close",
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Refused"}\r\n${lines.join("")}\r\n${text}`;
}
