import { JsonBytes, type Operation } from "@headworks/contract-kit";
import { compileRequestValidator, type RequestValidator } from "@headworks/contract-kit/server";
import { ApiError, type ErrorDetail, validationError } from "./api-error.ts";
import { authorize, type Identify } from "./gate.ts";
import { announcesBody, type RequestBody, mediaType, readJsonBody, refuseCoding } from "./read-body.ts";

/** A handler with erased types, for the table of all slices. */
export type AnyHandler = (input: {
  params: unknown;
  query: unknown;
  body: unknown;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  signal: AbortSignal;
}) => unknown;

/** A request as the HTTP library provides it. */
export interface BoundRequest {
  readonly params: Readonly<Record<string, string>>;
  /** Text after the question mark, without it. */
  readonly search: string;
  readonly source: RequestBody;
  readonly signal: AbortSignal;
}

/** The response; `body` is undefined when it is empty. */
export interface BoundResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array> | undefined;
}

interface Result {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/**
 * Binds an operation to its handler: authorizes, parses, validates, calls the handler and serializes, in this order.
 * @throws ApiError for refusals
 */
export function bindOperation(
  operation: Operation,
  handler: AnyHandler,
  identify: Identify,
): (request: BoundRequest) => Promise<BoundResponse> {
  const validate = compileRequestValidator(operation);
  return async (request) => {
    const { source, signal } = request;
    const decision = authorize(operation.access, await identify(source.headers));
    if (decision !== "allowed") throw new ApiError(decision === "forbidden" ? "FORBIDDEN" : "UNAUTHORIZED");
    const query = parseSearch(request.search);
    const body = await readBody(operation, source);
    const values = checkedValues(validate, {
      params: { ...request.params },
      query,
      body: isUpload(operation) ? undefined : body,
    });
    const input = { ...values, ...(isUpload(operation) ? { body } : {}), headers: source.headers, signal };
    return serialize(operation, (await handler(input)) as Result);
  };
}

function checkedValues(
  validate: RequestValidator,
  given: Parameters<RequestValidator>[0],
): Parameters<RequestValidator>[0] {
  const { issues, values } = validate(given);
  // Nothing has an id of another form, so the id is unknown rather than invalid.
  if (issues.some(({ path }) => path === "params/id")) throw new ApiError("NOT_FOUND", "Nothing has this id");
  if (issues.length > 0) throw validationError(issues);
  return values;
}

/** Query parameters by name. A repeated one is refused as ambiguous. */
export function parseSearch(search: string): Record<string, string> {
  const repeated: ErrorDetail[] = [];
  const entries = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(search)) {
    if (entries.has(name)) repeated.push({ path: `query/${name}`, message: "is given more than once" });
    entries.set(name, value);
  }
  if (repeated.length > 0) throw validationError(repeated);
  return Object.fromEntries(entries);
}

function isUpload(operation: Operation): boolean {
  return operation.body !== undefined && "upload" in operation.body;
}

async function readBody(operation: Operation, source: RequestBody): Promise<unknown> {
  if (operation.body && "upload" in operation.body) {
    const accepted = operation.body.upload;
    if (!announcesBody(source)) throw validationError([{ path: "body", message: "a body is required" }]);
    if (!accepted.includes(mediaType(source) ?? "")) {
      throw new ApiError("UNSUPPORTED_MEDIA_TYPE", `The body must be ${accepted.join(" or ")}`);
    }
    refuseCoding(source);
    return source;
  }
  if (operation.method === "GET") return undefined;
  const body = await readJsonBody(source);
  if (operation.body !== undefined || body === undefined) return body;
  refuseBody(body);
  return undefined;
}

/** Operations without a body accept `{}`, which many clients send, but no properties. */
function refuseBody(body: unknown): void {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw validationError([{ path: "body", message: "this operation takes no body" }]);
  }
  const names = Object.keys(body);
  if (names.length > 0) {
    throw validationError(names.map((name) => ({ path: `body/${name}`, message: "unknown property" })));
  }
}

function serialize(operation: Operation, result: Result): BoundResponse {
  const declared = operation.responses[result.status];
  if (declared === undefined) {
    throw new TypeError(
      `${operation.method} ${operation.path} responded ${result.status}, which its contract does not list`,
    );
  }
  const headers = { ...countOf(operation, result.body), ...lowerCased(result.headers ?? {}) };
  refuseUndeclared(operation, headers);
  if (declared === null) return { status: result.status, headers, body: undefined };
  if ("media" in declared) {
    const { media } = declared;
    return {
      status: result.status,
      headers: { "content-type": withCharset(media), ...headers },
      body: result.body as string,
    };
  }
  const body = result.body instanceof JsonBytes ? result.body.bytes : JSON.stringify(result.body);
  return { status: result.status, headers: { "content-type": "application/json; charset=utf-8", ...headers }, body };
}

/** A list without a count from its handler is complete. */
function countOf({ responseFields }: Operation, body: unknown): Record<string, string> {
  if (!Array.isArray(body) || responseFields?.["X-Total-Count"] === undefined) return {};
  return { "x-total-count": String(body.length) };
}

/** An undocumented `X-` field is a bug, like an undocumented status. */
function refuseUndeclared({ method, path, responseFields = {} }: Operation, headers: BoundResponse["headers"]): void {
  const known = new Set(["x-content-type-options", ...Object.keys(responseFields).map((name) => name.toLowerCase())]);
  const unknown = Object.keys(headers).find((name) => name.startsWith("x-") && !known.has(name));
  if (unknown !== undefined) {
    throw new TypeError(`${method} ${path} responded with ${unknown}, which its contract does not list`);
  }
}

function withCharset(media: string): string {
  return media.startsWith("text/") && !media.includes("charset") ? `${media}; charset=utf-8` : media;
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
