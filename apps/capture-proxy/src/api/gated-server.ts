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
  /** Takes the requests that pass. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  readonly events: Pick<EventHub, "accept">;
  readonly identify: Identify;
}

/** What a live client sees is traffic. */
const LIVE_ACCESS = "traffic:read";
const LIVE_PATHS = new Set(["/ws", "/api/ws"]);
/** Lists of ids stand in the target, up to 400,000 characters of them. */
export const MAX_TARGET_BYTES = 458_752;
/** Names and values of all fields of a request together. */
const MAX_FIELDS_BYTES = 65_536;

/**
 * The HTTP server with the gate before everything else, so that no route, error path or upgrade can be reached around
 * it, and with the security fields on every answer.
 */
export function createGatedServer({ gate, handler, events, identify }: GatedServerParts): Server {
  const server = createServer(
    {
      maxHeaderSize: MAX_TARGET_BYTES + MAX_FIELDS_BYTES,
      // Offers of other protocols, such as h2c, are ignored (RFC 9110 section 7.8).
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
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
    // A reset while the handshake is decided must not end the process.
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

/** RFC 9110 section 15.5.22: it names the protocol to change to. */
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

/** What is sent behind an answer is read for so long, and so much of it. */
const DISCARD_MS = 10_000;
const MAX_DISCARDED_BYTES = 268_435_456;

/**
 * Reads what is left of a request that was answered early, and forgets it: many clients send all of a body before they
 * look for an answer, and closing the connection meanwhile would take the answer away from them. Resolves when the
 * body has ended or the client is gone; one that goes on for too long is cut off.
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

/** The body of an early response: sent at once, ended when the request's body has ended too. */
export async function* beforeRest(text: string, request: IncomingMessage): AsyncGenerator<string> {
  yield text;
  await discardRest(request);
}

/** The request's body; who stops reading it leaves the connection whole, which carries the answer. */
export function bodyOf(request: IncomingMessage): {
  readonly headers: IncomingMessage["headers"];
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array>;
} {
  return {
    headers: request.headers,
    [Symbol.asyncIterator]: () => request.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>,
  };
}
