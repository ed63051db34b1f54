import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** Node's error for bytes that are not a valid request. */
export interface ParserError extends Error {
  readonly code?: string;
  /** The bytes that arrived last, and how many of them were read. */
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

export interface ParserRefusal {
  readonly status: 400 | 408 | 431 | 505;
  readonly error: ParserError;
  /** The request whose body broke; undefined for a head. */
  readonly request: IncomingMessage | undefined;
}

/** How long a connection with a refused request may continue to send: closing at once could discard the response. */
const LINGER_MS = 2_000;

const STATUSES: Readonly<Record<string, ParserRefusal["status"]>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_INVALID_VERSION: 505,
  HPE_PAUSED_H2_UPGRADE: 505,
};

/**
 * Responds to requests that Node's parser refuses with the bytes from `responseTo`, after the response to the request before
 * it; a response that has begun is cut.
 */
export function respondToParserErrors(server: Server, responseTo: (refusal: ParserRefusal) => string): void {
  const underWay = new WeakMap<Duplex, { readonly request: IncomingMessage; readonly response: ServerResponse }>();
  server.on("request", (request, response) => {
    const { socket } = request;
    underWay.set(socket, { request, response });
    response.once("close", () => {
      if (underWay.get(socket)?.response === response) underWay.delete(socket);
    });
  });
  server.on("clientError", (error: ParserError, socket) => {
    const refuse = (request?: IncomingMessage): void => {
      if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
      else endConnection(socket, responseTo({ status: STATUSES[error.code ?? ""] ?? 400, error, request }));
    };
    const begun = underWay.get(socket);
    if (begun === undefined) refuse();
    else if (begun.request.complete) begun.response.once("close", () => refuse());
    else if (begun.response.headersSent) socket.destroy();
    else refuse(begun.request);
  });
}

/** Writes the last response of a connection. */
export function endConnection(socket: Duplex, response: string): void {
  socket.on("error", () => socket.destroy());
  socket.end(response);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}
