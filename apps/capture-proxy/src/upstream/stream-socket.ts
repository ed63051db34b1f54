// Tested by ../../test/http2-websocket.test.ts
import type { Http2Stream } from "node:http2";
import type { ByteSocket } from "@headworks/sockets";
import { CANCEL, NO_ERROR } from "./http2-codes.ts";

/**
 * A stream of HTTP/2 as the socket of the protocol that was switched to on it (RFC 8441, 5), or of a tunnel: ending it
 * ends a side.
 * @param resetCode  what a reset says
 */
export function streamSocket(stream: Http2Stream, resetCode: number = CANCEL): ByteSocket {
  const destroySoon = (): void => {
    if (stream.closed || stream.destroyed) return;
    if (stream.writableFinished) return stream.close(NO_ERROR);
    stream.once("finish", () => stream.close(NO_ERROR));
    if (!stream.writableEnded) stream.end();
  };
  const resetAndDestroy = (): void => {
    if (!stream.closed && !stream.destroyed) stream.close(resetCode);
  };
  return Object.assign(stream, { destroySoon, resetAndDestroy });
}
