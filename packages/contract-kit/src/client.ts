import { readJson } from "@headworks/json";
import type { AnyOperations, Operation, OperationInput, OperationOutput } from "./operation.ts";

/** A non-2xx response: the error code and message of the service, or of the connection (`status` 0). */
export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: unknown;

  constructor(status: number, code: string, message: string, details?: unknown, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ApiFailure";
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

export interface ClientOptions {
  /** Address before the prefix, without a slash at its end: `http://127.0.0.1:3001` or empty for the own origin. */
  readonly baseUrl: string;
  readonly prefix?: string;
  readonly headers?: () => Record<string, string>;
  readonly fetch?: typeof fetch;
}

/** One function per operation, grouped by slice. */
export type Client<T extends AnyOperations> = {
  readonly [S in keyof T]: {
    readonly [K in keyof T[S]]: (input: OperationInput<T[S][K]>) => Promise<OperationOutput<T[S][K]>>;
  };
};

/** The address of an operation with its parameters filled in, prefix included. */
export function operationUrl(
  operation: Operation,
  input: { readonly params?: unknown; readonly query?: unknown },
  prefix = "/api",
): string {
  const params = (input.params ?? {}) as Record<string, unknown>;
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries((input.query ?? {}) as Record<string, unknown>)) {
    if (value === undefined) continue;
    search.set(
      name,
      Array.isArray(value) ? value.join(",") : typeof value === "string" ? value : JSON.stringify(value),
    );
  }
  const text = search.toString();
  return `${prefix}${path}${text === "" ? "" : `?${text}`}`;
}

/** Calls one operation; throws {@link ApiFailure} for anything but a success. */
export async function callOperation(
  operation: Operation,
  input: {
    readonly params?: unknown;
    readonly query?: unknown;
    readonly body?: unknown;
    readonly signal?: AbortSignal;
    readonly headers?: Record<string, string>;
  },
  options: ClientOptions,
): Promise<unknown> {
  const headers: Record<string, string> = { accept: "application/json, */*", ...options.headers?.(), ...input.headers };
  const init: RequestInit & { duplex?: "half" } = { method: operation.method, headers };
  if (input.signal) init.signal = input.signal;
  if (input.body !== undefined) {
    if (operation.body && "upload" in operation.body) {
      headers["content-type"] ??= operation.body.upload[0] ?? "application/octet-stream";
      init.body = input.body as NonNullable<RequestInit["body"]>;
      init.duplex = "half";
    } else {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(input.body);
    }
  }
  const url = options.baseUrl + operationUrl(operation, input, options.prefix);
  let response: Response;
  try {
    response = await (options.fetch ?? fetch)(url, init);
  } catch (error) {
    if (input.signal?.aborted) throw error;
    throw new ApiFailure(0, "UNREACHABLE", `Cannot reach ${options.baseUrl || "the service"}`, undefined, error);
  }
  return readResponse(operation, response);
}

async function readResponse(operation: Operation, response: Response): Promise<unknown> {
  if (!response.ok) {
    const text = await response.text();
    let body: { error?: unknown; code?: unknown; details?: unknown } = {};
    try {
      body = readJson(text) as typeof body;
    } catch {
      // The response is from an intermediary; its text is the best message available.
    }
    const message = typeof body.error === "string" ? body.error : text || response.statusText;
    throw new ApiFailure(
      response.status,
      typeof body.code === "string" ? body.code : "HTTP_ERROR",
      message,
      body.details,
    );
  }
  const declared = operation.responses[response.status];
  if (declared && "media" in declared) return response;
  if (response.status === 204 || declared === null) {
    await response.arrayBuffer();
    return undefined;
  }
  return readJson(await response.text());
}

/** Builds the typed client of an operations table. */
export function createClient<const T extends AnyOperations>(operations: T, options: ClientOptions): Client<T> {
  const client: Record<string, Record<string, unknown>> = {};
  for (const [slice, table] of Object.entries(operations)) {
    const calls: Record<string, unknown> = {};
    for (const [name, operation] of Object.entries(table)) {
      const call = (input: Parameters<typeof callOperation>[1]) => callOperation(operation, input, options);
      calls[name] = call;
    }
    client[slice] = calls;
  }
  return client as unknown as Client<T>;
}
