import type { Readable } from "node:stream";
import type { Operation } from "@headworks/contract-kit";
import { compileRequestValidator } from "@headworks/contract-kit/server";
import { AdminError } from "./admin-error.ts";
import type { Operator } from "./roles.ts";

export interface Caller extends Operator {
  readonly requestId: string;
}

/** Untyped input of a handler. */
export interface HandlerCall {
  readonly params: unknown;
  readonly query: unknown;
  /** Parsed JSON, or the text of an upload. */
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly caller: Caller;
  /** True while the current bindings allow this operation; for streaming responses. */
  readonly isStillAllowed: () => boolean;
  /** Adds a detail to the audit entry of this call; no secrets. */
  readonly note: (detail: string) => void;
}

export type AnyHandler = (call: HandlerCall) => unknown;

interface Given {
  readonly params: Readonly<Record<string, string>>;
  /** The query string. */
  readonly search: string;
  readonly headers: HandlerCall["headers"];
  readonly body: string | undefined;
  readonly caller: Caller;
  readonly isStillAllowed: HandlerCall["isStillAllowed"];
  readonly note: HandlerCall["note"];
}

interface BoundResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Readable;
}

/** Wraps an operation's handler with parsing, validation and serialization. */
export function bindOperation(operation: Operation, handler: AnyHandler): (given: Given) => Promise<BoundResponse> {
  const validate = compileRequestValidator(operation);
  const isUpload = operation.body !== undefined && "upload" in operation.body;
  return async ({ params, search, headers, body, caller, isStillAllowed, note }) => {
    const parsed = isUpload ? undefined : parseJson(body);
    const { issues, values } = validate({ params: { ...params }, query: parseSearch(search), body: parsed });
    if (issues.length > 0) {
      throw new AdminError("bad_request", issues.map(({ path, message }) => `${path} ${message}`).join("; "));
    }
    if (isUpload) refuseForeignType(operation, headers["content-type"]);
    const response = (await handler({
      ...values,
      body: isUpload ? (body ?? "") : values.body,
      headers,
      caller,
      isStillAllowed,
      note,
    })) as {
      status: number;
      headers?: Readonly<Record<string, string>>;
      body?: unknown;
    };
    const declared = operation.responses[response.status];
    if (declared !== null && declared !== undefined && "media" in declared) {
      return {
        status: response.status,
        headers: { "content-type": `${declared.media}; charset=utf-8`, ...response.headers },
        body: response.body as string | Readable,
      };
    }
    return {
      status: response.status,
      headers: { "content-type": "application/json", ...response.headers },
      body: JSON.stringify(response.body),
    };
  };
}

function parseJson(body: string | undefined): unknown {
  if (body === undefined || body === "") return undefined;
  try {
    return JSON.parse(body) as unknown;
  } catch (error) {
    throw new AdminError("bad_request", `The body is no JSON: ${(error as Error).message}`);
  }
}

/** Of repeated parameters the first counts. */
function parseSearch(search: string): Record<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(search)) if (!values.has(name)) values.set(name, value);
  return Object.fromEntries(values);
}

function refuseForeignType(operation: Operation, type: string | string[] | undefined): void {
  if (typeof type !== "string" || operation.body === undefined || !("upload" in operation.body)) return;
  const bare = type.split(";")[0]?.trim().toLowerCase() ?? "";
  // The default content type of curl and others.
  if (bare === "application/x-www-form-urlencoded" || bare === "application/x-yaml" || bare === "text/yaml") return;
  if (!operation.body.upload.includes(bare)) {
    throw new AdminError("unsupported_media_type", `The body must be ${operation.body.upload.join(" or ")}`);
  }
}
