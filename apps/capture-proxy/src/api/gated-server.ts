import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { endConnection, respondToParserErrors } from "@headworks/contract-kit/parser-errors";
import { ApiError } from "./api-error.ts";
import type { EventHub } from "./events.ts";
import { authorize, type Gate, type Identify, pathOf, SECURITY_FIELDS } from "./gate.ts";
import { announcesBody } from "./read-body.ts";
import { errorResponse, type ErrorResponse, rawResponse, refusalResponse } from "./respond-error.ts";

export interface GatedServerParts {
  readonly gate: Gate;
  /** Handles requests that pass the gate. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  readonly events: Pick<EventHub, "accept">;
  readonly identify: Identify;
}

/** Permission for live events. */
const LIVE_ACCESS = "traffic:read";
const LIVE_PATHS = new Set(["/ws", "/api/ws"]);
/** Targets may contain lists of ids, up to 400,000 characters. */
export const MAX_TARGET_BYTES = 458_752;
/** Maximum total size of all names and values of a request. */
const MAX_FIELDS_BYTES = 65_536;
/**
 * Clients keep connections in a pool. After Node's default of five seconds, a client that was busy in between sends its
 * next request on a connection that is being closed.
 */
const KEEP_ALIVE_MS = 72_000;

/**
 * The HTTP server with the gate in front of every route, error path and upgrade, and the security fields on every
 * response.
 */
export function createGatedServer({ gate, handler, events, identify }: GatedServerParts): Server {
  const server = createServer(
    {
      maxHeaderSize: MAX_TARGET_BYTES + MAX_FIELDS_BYTES,
      // Offers of other protocols, such as h2c, are ignored (RFC 9110, 7.8).
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Node's own refusal has neither body nor fields; the gate refuses a request without Host anyway.
      requireHostHeader: false,
    },
    (request, response) => {
      for (const [name, value] of Object.entries(SECURITY_FIELDS)) response.setHeader(name, value);
      if (hasLargeFields(request)) return writeResponse(request, response, FIELDS_TOO_LARGE);
      const decision = gate(gateRequest(request, false));
      if (decision.kind === "refuse") {
        return writeResponse(request, response, refusalResponse(decision.code, decision.message));
      }
      const isRead = request.method === "GET" || request.method === "HEAD";
      if (isRead && LIVE_PATHS.has(pathOf(request.url ?? ""))) {
        return writeResponse(request, response, UPGRADE_REQUIRED);
      }
      return handler(request, response);
    },
  );
  // By default Node silently drops all fields after the first 1,000; here their bytes are limited instead.
  server.maxHeadersCount = 0;
  server.on("upgrade", (request, socket, head) => {
    // A reset during an asynchronous decision must not end the process.
    socket.on("error", () => socket.destroy());
    if (hasLargeFields(request)) return refuse(socket, FIELDS_TOO_LARGE);
    const decision = gate(gateRequest(request, true));
    if (decision.kind === "refuse") return refuse(socket, refusalResponse(decision.code, decision.message));
    if (!LIVE_PATHS.has(pathOf(request.url ?? ""))) return refuse(socket, refusalResponse("NOT_FOUND"));
    mayListen(identify, request).then(
      (refusal) => {
        const found = refusal ?? events.accept(request, socket, head);
        if (found) refuse(socket, found);
      },
      (error: unknown) => refuse(socket, errorResponse(error)),
    );
    return undefined;
  });
  server.on("checkExpectation", (request, response) => {
    for (const [name, value] of Object.entries(SECURITY_FIELDS)) response.setHeader(name, value);
    writeResponse(request, response, {
      ...refusalResponse("BAD_REQUEST", "The only expectation served is 100-continue"),
      status: 417,
    });
  });
  server.on("connect", (_request, socket: Duplex) =>
    refuse(socket, refusalResponse("BAD_REQUEST", "The request target must be a path")),
  );
  respondToParserErrors(server, ({ status }) =>
    rawResponse({ ...refusalResponse("BAD_REQUEST", PARSER_MESSAGES[status]), status }, SECURITY_FIELDS),
  );
  return server;
}

/** A 426 names the required protocol (RFC 9110, 15.5.22). */
const UPGRADE_REQUIRED: ErrorResponse = {
  ...refusalResponse("BAD_REQUEST", "This address is for WebSocket clients"),
  status: 426,
  headers: { upgrade: "websocket", connection: "close, upgrade" },
};

const FIELDS_TOO_LARGE: ErrorResponse = {
  ...refusalResponse("BAD_REQUEST", `The header fields are larger than ${MAX_FIELDS_BYTES} bytes`),
  status: 431,
};

function hasLargeFields({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.reduce((sum, text) => sum + text.length, 0) > MAX_FIELDS_BYTES;
}

async function mayListen(identify: Identify, request: IncomingMessage): Promise<ErrorResponse | undefined> {
  const decision = authorize(LIVE_ACCESS, await identify(request.headers));
  if (decision === "allowed") return undefined;
  return errorResponse(new ApiError(decision === "forbidden" ? "FORBIDDEN" : "UNAUTHORIZED"));
}

function refuse(socket: Duplex, refusal: ErrorResponse): void {
  endConnection(socket, rawResponse(refusal, SECURITY_FIELDS));
}

const PARSER_MESSAGES = {
  400: "This is not a valid HTTP request",
  408: "The request took too long",
  431: "The request target or the header fields are too large",
  505: "This HTTP version is not supported",
};

function gateRequest(request: IncomingMessage, isUpgrade: boolean): Parameters<Gate>[0] {
  const single = (name: string): string | undefined => {
    const value = request.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };
  return {
    method: request.method ?? "",
    target: request.url ?? "",
    hosts: request.headersDistinct["host"] ?? [],
    origin: single("origin"),
    forwardedProto: single("x-forwarded-proto"),
    secFetchSite: single("sec-fetch-site"),
    secFetchMode: single("sec-fetch-mode"),
    isUpgrade,
    localAddress: request.socket.localAddress,
  };
}

function writeResponse(request: IncomingMessage, response: ServerResponse, refusal: ErrorResponse): void {
  const { status, body, headers } = refusal;
  const text = JSON.stringify(body);
  response.writeHead(status, {
    connection: "close",
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
  });
  response.write(text);
  void discardRest(request).then(() => response.end());
}

/** Limits for discarding a request body after an early response. */
const DISCARD_MS = 10_000;
const MAX_DISCARDED_BYTES = 268_435_456;

/**
 * Reads and discards the rest of a request after an early response: many clients send the whole body before they read,
 * and closing the connection would discard the response. Resolves when the body ended or the client disconnected; a
 * body that exceeds the limits is cut off.
 */
export async function discardRest(request: IncomingMessage, maxBytes = MAX_DISCARDED_BYTES): Promise<void> {
  if (!announcesBody(request) || request.readableEnded || request.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const end = (): void => resolve(undefined);
  let discardedBytes = 0;
  request.on("data", (piece: Uint8Array) => {
    discardedBytes += piece.length;
    if (discardedBytes > maxBytes) end();
  });
  request.once("end", end).once("close", end);
  const timer = setTimeout(end, DISCARD_MS);
  await promise;
  clearTimeout(timer);
  if (!request.complete) request.destroy();
}

/** The body of an early response: sent at once, ended after the request's body. */
export async function* beforeRest(text: string, request: IncomingMessage): AsyncGenerator<string> {
  yield text;
  await discardRest(request);
}

/** The request's body. Aborting the iteration does not destroy the connection, which carries the response. */
export function bodyOf(request: IncomingMessage): {
  readonly headers: IncomingMessage["headers"];
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array>;
} {
  return {
    headers: request.headers,
    [Symbol.asyncIterator]: () => request.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>,
  };
}
