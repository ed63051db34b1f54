import type { Writable } from "node:stream";
import { CHUNK_END, chunkPrefix } from "@headworks/http1";
import { noteGarbage } from "./buffer-garbage.ts";
import { atTurnEnd, type Waiting } from "./turn-end.ts";

/** Pieces up to this size travel as text together with the head before them: one write instead of two. */
const TEXT_PIECE_BYTES = 8192;
/** Larger pieces are copied behind waiting text up to this size; above it the copy costs more than a second write. */
const JOINED_PIECE_BYTES = 131_072;
const MAX_WAITING_CHARACTERS = 65_536;
/** One read of a socket, and a head before it. */
const DESK_BYTES = 69_632;

/**
 * Where a write is put together. The next one uses the same memory if the system took this one at once, as it does unless
 * the other side is slow: then the memory is that socket's, and there is a new desk. Memory made for each write cost answers
 * of 16 KB and of 1 MB a seventh of their time.
 */
let desk = Buffer.allocUnsafeSlow(DESK_BYTES);

/**
 * Gathers what one read caused to be written, so that a small message leaves in one write. Text is latin1, which
 * holds any byte. The owner calls {@link flushSoon} when the read is worked off, and ends its side by {@link end}.
 */
export class BatchedWriter implements Waiting {
  isWaiting = false;
  readonly #socket: Writable;
  readonly #copies: boolean;
  /** TLS always says later that it has taken a write. */
  readonly #isPrompt: boolean;
  #text = "";

  /**
   * `socket` looks no more at memory once that write is finished, as sockets of the system do. `copies`: pieces lie in
   * memory that is overwritten after the call.
   */
  constructor(socket: Writable & { readonly encrypted?: boolean }, copies = false) {
    this.#socket = socket;
    this.#copies = copies;
    this.#isPrompt = socket.encrypted !== true;
  }

  text(text: string): void {
    this.#text += text;
  }

  bytes(piece: Buffer): void {
    if (piece.length <= TEXT_PIECE_BYTES) {
      this.#text += piece.toString("latin1");
      if (this.#text.length > MAX_WAITING_CHARACTERS) this.flush();
    } else if (this.#text === "" && !this.#copies) {
      this.#socket.write(piece);
    } else {
      this.#joined(piece, "");
    }
  }

  /** The piece as one chunk of a chunked body. */
  chunk(piece: Buffer): void {
    this.#text += chunkPrefix(piece.length);
    if (piece.length <= TEXT_PIECE_BYTES) {
      this.#text += piece.toString("latin1") + CHUNK_END;
      if (this.#text.length > MAX_WAITING_CHARACTERS) this.flush();
    } else {
      this.#joined(piece, CHUNK_END);
    }
  }

  /** Hands over what waits with the writes of other connections, at the end of this turn. Answers like {@link flush}. */
  flushSoon(): boolean {
    if (this.#text.length > MAX_WAITING_CHARACTERS) return this.flush();
    if (this.#text !== "") atTurnEnd(this);
    return !this.#socket.writableNeedDrain;
  }

  /** Hands over what waits, and ends our side. */
  end(): void {
    this.flush();
    this.#socket.end();
  }

  /** Hands over what waits. False: the socket's buffer is full, stop producing until it drained. */
  flush(): boolean {
    if (this.#text !== "") {
      const text = this.#text;
      this.#text = "";
      if (!this.#socket.destroyed) this.#socket.write(text, "latin1");
    }
    return !this.#socket.writableNeedDrain;
  }

  #joined(piece: Buffer, suffix: string): void {
    if (piece.length > JOINED_PIECE_BYTES) {
      this.flush();
      this.#text = suffix;
      this.#socket.write(this.#copies ? Buffer.from(piece) : piece);
      if (this.#copies) noteGarbage(piece.length);
      return;
    }
    const text = this.#text;
    this.#text = "";
    const sizeBytes = text.length + piece.length + suffix.length;
    const isOnDesk = this.#isPrompt && sizeBytes <= DESK_BYTES && this.#socket.writableLength === 0;
    const joined = isOnDesk ? desk.subarray(0, sizeBytes) : Buffer.allocUnsafe(sizeBytes);
    joined.write(text, 0, "latin1");
    piece.copy(joined, text.length);
    joined.write(suffix, text.length + piece.length, "latin1");
    this.#socket.write(joined);
    if (!isOnDesk) noteGarbage(sizeBytes);
    else if (this.#socket.writableLength !== 0) desk = Buffer.allocUnsafeSlow(DESK_BYTES);
  }
}
