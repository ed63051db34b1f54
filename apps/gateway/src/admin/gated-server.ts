import { createServer as createPlainServer, STATUS_CODES } from "node:http";
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Duplex } from "node:stream";
import { respondToParserErrors, endConnection, type ParserError } from "@headworks/contract-kit/parser-errors";
import { fieldValue, isAuthority } from "@headworks/http1";
import { AdminError } from "./admin-error.ts";
import type { TlsMaterial } from "./tls-material.ts";

export interface GatedServerParts {
  /** Undefined: plain HTTP for development, on loopback only. */
  readonly tls: TlsMaterial | undefined;
  /** Handles admitted requests. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  /** The request id: the client's if valid, otherwise a new one. */
  readonly requestIdFor: (sent: string | undefined) => string;
  /** Timeouts for the header and the whole request; default 10,000 and 60,000 ms. */
  readonly limitsMs?: { readonly head: number; readonly request: number };
}

/** Maximum total size of header names and values. */
const MAX_FIELDS_BYTES = 65_536;
export const MAX_TARGET_BYTES = 16_384;
/** The parser's limit, high enough above the others that a refusal of a large header still has the client's id. */
const MAX_HEAD_BYTES = 8 * MAX_FIELDS_BYTES;
const TLS_RULES = { requestCert: true, rejectUnauthorized: true } as const;
const LOOPBACK_NAMES = new Set(["localhost", "127.0.0.1", "[::1]"]);

const HEAD_ID = /\r\nx-request-id:[ \t]*([^\r\n]*?)[ \t]*(?:\r|$)/i;
const requestIds = new WeakMap<IncomingMessage, string>();

/** The request id, which the response has in `X-Request-Id`. */
export function requestIdOf(request: IncomingMessage): string {
  return requestIds.get(request) ?? "";
}

/** The body of error responses. */
export function errorBody({ code, message, issues }: AdminError, requestId: string): string {
  return JSON.stringify({
    error: { code, message, request_id: requestId, ...(issues === undefined ? {} : { issues }) },
  });
}

/**
 * An HTTP server with checks that apply to all requests before routing, including parser errors, so that all errors
 * have the same form. Each response has `X-Request-Id`.
 */
export function createGatedServer({ tls, handler, requestIdFor, limitsMs }: GatedServerParts): Server {
  const options: ServerOptions = {
    maxHeaderSize: MAX_HEAD_BYTES,
    // Node's own response has no body.
    requireHostHeader: false,
    headersTimeout: limitsMs?.head ?? 10_000,
    requestTimeout: limitsMs?.request ?? 60_000,
    connectionsCheckingInterval: Math.min(limitsMs?.head ?? 10_000, 10_000) / 2,
  };
  const identify = (request: IncomingMessage): string => {
    const id = requestIdFor(fieldValue(request.rawHeaders, "x-request-id"));
    requestIds.set(request, id);
    return id;
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    response.setHeader("X-Request-Id", identify(request));
    const refusal = refusalOf(request, tls === undefined);
    if (refusal === undefined) handler(request, response);
    else respond(refusal, request, response);
  };
  const server =
    tls === undefined
      ? createPlainServer(options, listener)
      : createSecureServer({ ...options, ...tls, ...TLS_RULES }, listener);
  // By default Node drops fields after the first 1,000 silently; here their size is limited.
  server.maxHeadersCount = 0;
  server.maxConnections = 1000;
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    response.setHeader("X-Request-Id", identify(request));
    respond(refusalOf(request, tls === undefined) ?? new AdminError("expectation_failed"), request, response);
  });
  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    const refusal = refusalOf(request, tls === undefined) ?? new AdminError("method_not_allowed");
    endConnection(socket, responseText(refusal, identify(request)));
  });
  respondToParserErrors(server, ({ status, error, request }) =>
    responseText(PARSER_REFUSALS[status], request === undefined ? requestIdFor(sentId(error)) : requestIdOf(request)),
  );
  return server;
}

/** Checks independent of the operation. */
function refusalOf(request: IncomingMessage, isDevelopment: boolean): AdminError | undefined {
  const { rawHeaders, headersDistinct, httpVersion, url = "" } = request;
  if (rawHeaders.reduce((sum, text) => sum + text.length, 0) > MAX_FIELDS_BYTES) {
    return new AdminError("request_headers_too_large");
  }
  if (url.length > MAX_TARGET_BYTES) return new AdminError("uri_too_long");
  const [host, ...others] = headersDistinct["host"] ?? [];
  if (others.length > 0) return new AdminError("bad_request", "The request has more than one Host");
  // RFC 9112 section 3.2: HTTP/1.0 has no Host.
  if (host === undefined && httpVersion !== "1.0") return new AdminError("bad_request", "The request has no Host");
  if (host !== undefined && !isAuthority(host)) {
    return new AdminError("bad_request", "The Host is not a name or address with an optional port");
  }
  if (!url.startsWith("/")) return new AdminError("bad_request", "The request target must be a path");
  return isDevelopment ? foreignRequest(request, host ?? "") : undefined;
}

/** Protects against DNS rebinding to a loopback port. */
function foreignRequest({ headers }: IncomingMessage, host: string): AdminError | undefined {
  const name = host.replace(/\.?(?::\d*)?$/, "").toLowerCase();
  const site = headers["sec-fetch-site"];
  if (!LOOPBACK_NAMES.has(name)) return new AdminError("misdirected_request");
  const isForeign = headers.origin !== undefined || (site !== undefined && site !== "none" && site !== "same-origin");
  return isForeign ? new AdminError("role_forbidden", "The request comes from a web page") : undefined;
}

const PARSER_REFUSALS = {
  400: new AdminError("bad_request", "The bytes are not a valid HTTP request"),
  408: new AdminError("request_timeout"),
  431: new AdminError("request_headers_too_large"),
  505: new AdminError("version_not_supported"),
};

/** The client's id in a header that the parser rejected, if the last packet begins with that header. */
function sentId({ rawPacket, bytesParsed }: ParserError): string | undefined {
  const text = rawPacket?.toString("latin1") ?? "";
  const before = text.slice(0, bytesParsed).lastIndexOf("\r\n\r\n");
  const [head = ""] = text.slice(before === -1 ? 0 : before + 4).split("\r\n\r\n", 1);
  return HEAD_ID.exec(head)?.[1];
}

function respond(refusal: AdminError, request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(refusal.status, { ...ERROR_FIELDS, connection: "close" });
  response.end(errorBody(refusal, requestIdOf(request)));
}

/** Headers of error responses. */
export const ERROR_FIELDS = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" } as const;

/** For connections without a response object: malformed requests and CONNECT. */
function responseText(refusal: AdminError, requestId: string): string {
  const body = errorBody(refusal, requestId);
  const fields = Object.entries({
    ...ERROR_FIELDS,
    "x-request-id": requestId,
    "content-length": Buffer.byteLength(body),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${fields.join("")}\r\n${body}`;
}
