// Tested by ../../../apps/capture-proxy/test/http2-resets.test.ts and ../../../apps/gateway/test/http2-upstream.test.ts
import type { ClientHttp2Stream } from "node:http2";

/**
 * Tells the end of an answer over HTTP/2 from a reset without an error (RFC 9113, 8.1), after which node ends the reading
 * side as well. Their order says which it was: the end of an answer comes before the stream is closed. Only while reading is
 * paused both come at once.
 */
export class AnswerEnd {
  #sign: "none" | "seen" | "perhaps" | "reset" = "none";
  #missingBytes: number | undefined;

  /** Watches the stream from now on: to be made before anything can have arrived. */
  constructor(stream: ClientHttp2Stream) {
    const push = stream.push.bind(stream);
    const noticing = (piece: unknown, encoding?: BufferEncoding): boolean => {
      if (piece === null && this.#sign === "none") {
        this.#sign = stream.closed ? (stream.isPaused() ? "perhaps" : "reset") : "seen";
      }
      return push(piece, encoding);
    };
    stream.push = noticing;
  }

  /** The answer announced a body of so many bytes. */
  announce(lengthBytes: number): void {
    this.#missingBytes = lengthBytes;
  }

  /** So many bytes of the body were read. */
  read(sizeBytes: number): void {
    if (this.#missingBytes !== undefined) this.#missingBytes -= sizeBytes;
  }

  /**
   * Whether the end that the reading side came to is that of the answer. Of an announced length that is there, nothing can
   * be missing: servers of node's at times reset a stream without an error in place of saying that it ends.
   */
  get isWhole(): boolean {
    if (this.#sign === "seen" || this.#missingBytes === 0) return true;
    return this.#sign === "perhaps" && this.#missingBytes === undefined;
  }
}
