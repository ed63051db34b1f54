import { Agent, type IncomingMessage, request } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type DetailedHealth, metricsOperations } from "@headworks/capture-contract";
import type { Operation } from "@headworks/contract-kit";
import { ApiFailure, operationUrl } from "@headworks/contract-kit/client";
import { readJson } from "@headworks/json";
import { CommandFailure, EXIT } from "./invocation.ts";
import { visibleText } from "./terminal.ts";

/** Where the service is and how long to wait for it. */
export interface ApiAddress {
  /** Without a slash at its end: `http://127.0.0.1:3001`. It may hold credentials; messages use {@link shownUrl}. */
  readonly baseUrl: string;
  readonly timeoutMs: number;
}

export interface ApiRequest {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  /** A value sent as JSON. */
  readonly body?: unknown;
  /** Bytes sent as they are, instead of `body`. */
  readonly upload?: Readable;
  /** Further header fields. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export const DEFAULT_URL = "http://127.0.0.1:3001";
const DEFAULT_TIMEOUT_S = 30;

/** Reads `--api-url` and `--timeout` or their variables. Throws {@link CommandFailure} when they cannot be used. */
export function apiAddress(
  given: { readonly apiUrl?: string; readonly timeout?: string },
  environment: Readonly<Record<string, string | undefined>>,
): ApiAddress {
  const at = firstGiven(environment, "--api-url", given.apiUrl, ["WEIR_API_URL", "SERVICE_API_URL"]);
  const text = at?.text ?? DEFAULT_URL;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
    throw new CommandFailure(
      EXIT.usage,
      `${at?.name ?? ""}: ${JSON.stringify(text.replace(/\/\/[^/]*@/, "//[REDACTED]@"))} is not the address of a service, such as ${DEFAULT_URL}`,
    );
  }
  const limit = firstGiven(environment, "--timeout", given.timeout, ["WEIR_TIMEOUT", "SERVICE_TIMEOUT"]);
  const seconds = limit?.text ?? String(DEFAULT_TIMEOUT_S);
  const timeoutMs = Number(seconds) * 1000;
  if (seconds.trim() === "" || !Number.isFinite(timeoutMs) || timeoutMs <= 0 || timeoutMs > 86_400_000) {
    throw new CommandFailure(
      EXIT.usage,
      `${limit?.name ?? ""}: ${JSON.stringify(seconds)} is not a number of seconds between 0 and 86400`,
    );
  }
  return { baseUrl: url.href.replace(/\/+$/, ""), timeoutMs };
}

/** The address as it may be printed. */
export function shownUrl({ baseUrl }: ApiAddress): string {
  return baseUrl.replace(/^(\w+:\/\/)[^/]*@/, "$1[REDACTED]@");
}

/** The message if no service listens at the address, followed by `reason`. */
export function noServiceText(address: ApiAddress, reason = ""): string {
  return `No Weir is running at ${shownUrl(address)}${reason}: start it with \`weir serve\`, or specify another address with --api-url or WEIR_API_URL`;
}

/** The value of a flag or of the first of its variables that is set, and the name of that one. Empty variables are unset; an empty flag is not. */
function firstGiven(
  environment: Readonly<Record<string, string | undefined>>,
  flag: string,
  given: string | undefined,
  variables: readonly string[],
): { readonly name: string; readonly text: string } | undefined {
  if (given !== undefined) return { name: flag, text: given };
  const name = variables.find((each) => (environment[each] ?? "") !== "");
  return name === undefined ? undefined : { name, text: environment[name] ?? "" };
}

/**
 * Calls one operation and returns its response with the body unread. Throws {@link ApiFailure} unless it succeeds. Uses
 * node:http with its own agent and so bypasses a proxy of the environment, which may be the very service that is called.
 */
export async function callApi(address: ApiAddress, operation: Operation, input: ApiRequest): Promise<IncomingMessage> {
  const response = await send(address, operation, input);
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return response;
  throw await refusal(response, status);
}

/** Calls an operation whose response is JSON or empty; also returns the response's text and header fields. */
export async function callJson(
  address: ApiAddress,
  operation: Operation,
  input: ApiRequest,
): Promise<{ readonly text: string; readonly value: unknown; readonly headers: IncomingMessage["headers"] }> {
  const response = await callApi(address, operation, input);
  const text = await readText(response);
  if (text === "") return { text, value: undefined, headers: response.headers };
  try {
    return { text, value: readJson(text), headers: response.headers };
  } catch (cause) {
    throw new ApiFailure(
      response.statusCode ?? 0,
      "NOT_JSON",
      `${shownUrl(address)} does not respond like Weir's API`,
      undefined,
      cause,
    );
  }
}

async function send(address: ApiAddress, operation: Operation, input: ApiRequest): Promise<IncomingMessage> {
  const url = new URL(address.baseUrl + operationUrl(operation, input));
  const isSecure = url.protocol === "https:";
  const json = input.upload === undefined && input.body !== undefined ? JSON.stringify(input.body) : undefined;
  const outgoing = (isSecure ? secureRequest : request)(url, {
    method: operation.method,
    agent: isSecure ? new SecureAgent() : new Agent(),
    headers: { accept: "application/json, */*", ...input.headers, ...bodyFields(operation, input, json) },
    ...(input.signal === undefined ? {} : { signal: input.signal }),
  });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.once("response", resolve);
  outgoing.once("error", (error) => reject(unreachable(address, error)));
  // Idle time, not total time: a transfer may take as long as it moves.
  outgoing.setTimeout(address.timeoutMs, () => {
    const message = `${shownUrl(address)} did not respond within ${address.timeoutMs / 1000} seconds`;
    outgoing.destroy(new ApiFailure(0, "TIMEOUT", message));
  });
  if (input.upload === undefined) outgoing.end(json);
  else pipeline(input.upload, outgoing).catch((error: unknown) => reject(unreachable(address, error as Error)));
  return await promise;
}

function bodyFields(operation: Operation, input: ApiRequest, json: string | undefined): Record<string, string> {
  if (json !== undefined) {
    return { "content-type": "application/json", "content-length": String(Buffer.byteLength(json)) };
  }
  if (input.upload === undefined) return operation.method === "GET" ? {} : { "content-length": "0" };
  const types = operation.body !== undefined && "upload" in operation.body ? operation.body.upload : [];
  return { "content-type": types[0] ?? "application/octet-stream" };
}

function unreachable(address: ApiAddress, error: Error & { code?: string }): unknown {
  if (error instanceof ApiFailure || error.name === "AbortError") return error;
  const reason = error.code === "ECONNREFUSED" || error.code === undefined ? "" : ` (${error.code})`;
  return new ApiFailure(0, "UNREACHABLE", noServiceText(address, reason), undefined, error);
}

async function refusal(response: IncomingMessage, status: number): Promise<ApiFailure> {
  const text = await readText(response);
  let body: { error?: unknown; code?: unknown; details?: unknown } | null | undefined;
  try {
    body = JSON.parse(text) as { error?: unknown } | null;
  } catch {
    // The response is not Weir's; its first line is the best message available.
  }
  const message =
    typeof body?.error === "string"
      ? body.error
      : `The response was ${status}: ${text.trim().split("\n", 1)[0]?.slice(0, 200) ?? ""}`;
  return new ApiFailure(status, typeof body?.code === "string" ? body.code : "HTTP_ERROR", message, body?.details);
}

/** The whole body as text. */
export async function readText(source: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

/** The service's sentence with its code, and one line for each detail. */
export function apiFailureText(failure: ApiFailure): string {
  const details = Array.isArray(failure.details) ? (failure.details as { path?: string; message?: string }[]) : [];
  // With a single detail the sentence often is the detail already.
  const telling = details.filter(({ message }) => !failure.message.includes(message ?? ""));
  const lines = telling.map(({ path, message }) => `\n  ${visibleText(path ?? "")}: ${visibleText(message ?? "")}`);
  return failure.status === 0
    ? failure.message
    : `${visibleText(failure.message)} (${visibleText(failure.code)})${lines.join("")}`;
}

/** The health of the service at an address; undefined if none responds within `probeMs`. */
export async function serviceHealth(
  address: ApiAddress,
  probeMs: number,
  signal?: AbortSignal,
): Promise<DetailedHealth | undefined> {
  try {
    const { value } = await callJson(
      { ...address, timeoutMs: Math.min(address.timeoutMs, probeMs) },
      metricsOperations.getDetailedHealth,
      signal === undefined ? {} : { signal },
    );
    return typeof (value as Partial<DetailedHealth> | null)?.proxy_address === "string"
      ? (value as DetailedHealth)
      : undefined;
  } catch (error) {
    if (error instanceof ApiFailure) return undefined;
    throw error;
  }
}
