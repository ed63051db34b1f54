import type { IncomingMessage } from "node:http";
import { announcesBody } from "./read-body.ts";

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
