// Tested by ../../../apps/gateway/test/http2-unread.test.ts and ../../../apps/capture-proxy/test/http2-unread.test.ts
import type { Http2Stream } from "node:http2";
import type { ConnectionWindow } from "./connection-window.ts";

/**
 * Counts what arrived on a stream and nobody read yet in the window of its connection, and gives the stream's own window back
 * only when all of it was read. Node would give it back for what it puts aside while nobody reads, 64 KiB of each stream
 * however narrow its window is.
 */
export class UnreadBody {
  readonly #window: ConnectionWindow;
  readonly #ask: (sizeBytes: number) => void;
  #unreadBytes = 0;
  #isCounted = true;
  /** Node asked for more while something was unread. */
  #isAsked = false;

  constructor(stream: Http2Stream, window: ConnectionWindow) {
    this.#window = window;
    this.#ask = stream._read.bind(stream);
    this.#came(stream.readableLength);
    // Of what arrives while a stream is paused node tells nobody else, nor of what is put back.
    const push = stream.push.bind(stream);
    const countedPush = (piece: Buffer | null, encoding?: BufferEncoding): boolean => {
      if (piece !== null) this.#came(piece.length);
      return push(piece, encoding) && (!this.#isCounted || this.#unreadBytes === 0);
    };
    const unshift = stream.unshift.bind(stream);
    const countedUnshift = (piece: Buffer, encoding?: BufferEncoding): void => {
      this.#came(piece.length);
      unshift(piece, encoding);
    };
    const patientRead = (sizeBytes: number): void => {
      this.#isAsked = this.#isCounted && this.#unreadBytes > 0;
      if (!this.#isAsked) this.#ask(sizeBytes);
    };
    stream.push = countedPush;
    stream.unshift = countedUnshift;
    stream._read = patientRead;
  }

  /**
   * Notices by itself from now on what is read, by whomever and in whichever way. The stream is paused until somebody resumes
   * it.
   */
  follow(stream: Http2Stream): void {
    stream.pause();
    stream.on("data", (piece: Buffer) => this.read(piece.length));
  }

  /** So many bytes of it were read. */
  read(sizeBytes: number): void {
    if (!this.#isCounted) return;
    this.#unreadBytes -= sizeBytes;
    this.#window.read(sizeBytes);
    if (this.#unreadBytes === 0) this.#askAgain();
  }

  /** What is there, and what may still come, nobody will read. */
  forget(): void {
    if (!this.#isCounted) return;
    this.#isCounted = false;
    this.#window.read(this.#unreadBytes);
    this.#askAgain();
  }

  #askAgain(): void {
    if (!this.#isAsked) return;
    this.#isAsked = false;
    this.#ask(0);
  }

  #came(sizeBytes: number): void {
    if (!this.#isCounted || sizeBytes === 0) return;
    this.#unreadBytes += sizeBytes;
    this.#window.came(sizeBytes);
  }
}
