import { decompress, decompressSync, frameMessage } from "@headworks/grpc-framing";
import { type BodyFilter, type FilterReceiver, KeptPieces } from "#exchange/body.ts";
import type { MessageVerdict } from "#exchange/messages.ts";
import { whenDecided } from "#exchange/pipeline.ts";
import { shown } from "#rules/message-actions.ts";

/** Decides about the messages of one direction of a call. */
export interface GrpcDecider {
  /** Whether messages are held for {@link decide}. */
  gates(): boolean;
  /** `message` is uncompressed; everything behind it is held until the verdict. Aborted: the call is over. */
  decide(message: Buffer, over: AbortSignal): Promise<MessageVerdict>;
}

interface GrpcMessagesOptions {
  readonly to: FilterReceiver;
  readonly decider: GrpcDecider;
  /** The value of `grpc-encoding`. */
  readonly encoding: string;
  /** Larger messages are forwarded unchanged. */
  readonly limitBytes: number;
  /** Why something was forwarded without a decision. */
  readonly onNote: (words: string) => void;
}

/** Flags and length (gRPC over HTTP/2, "Length-Prefixed-Message"). */
const PREFIX_BYTES = 5;
const COMPRESSED = 1;
/** Complete messages that wait, before the source pauses. */
const LOW_BYTES = 65_536;
/** Messages up to this size are decompressed synchronously. */
const AT_ONCE_BYTES = 65_536;

interface Queued {
  readonly bytes: Buffer;
  /** A whole message with its prefix, as received; otherwise bytes that are forwarded without a decision. */
  readonly isMessage: boolean;
}

/**
 * Splits the body of a call into messages and holds each one for a decision, one at a time and in order. Unchanged
 * messages keep their bytes; changed ones are sent uncompressed, which every receiver accepts ("Compression").
 */
export class GrpcMessages implements BodyFilter {
  readonly #options: GrpcMessagesOptions;
  readonly #over = new AbortController();
  /** The first one may be with the decider. */
  #queue: Queued[] = [];
  #waitingBytes = 0;
  #isDeciding = false;
  #isBlocked = false;
  /** The frame that is not complete. */
  readonly #part = new KeptPieces();
  #partBytes = 0;
  #wantedBytes = PREFIX_BYTES;
  /** So many bytes belong to no message that is decided about. */
  #passingBytes = 0;

  constructor(options: GrpcMessagesOptions) {
    this.#options = options;
  }

  get isDeciding(): boolean {
    return this.#isDeciding;
  }

  get isEmpty(): boolean {
    return this.#waitingBytes === 0 && this.#partBytes === 0;
  }

  /** A message that is not complete does not count: its rest must come. */
  get isLow(): boolean {
    return this.#waitingBytes < LOW_BYTES;
  }

  add(piece: Buffer): void {
    if (this.#over.signal.aborted) return;
    for (let at = 0; at < piece.length;) at = this.#read(piece, at);
    this.#forward();
  }

  /** Half a frame is forwarded as it is. */
  end(): void {
    if (this.#partBytes === 0) return;
    this.#enqueue(false);
    this.#forward();
  }

  resume(): void {
    if (!this.#isBlocked) return;
    this.#isBlocked = false;
    if (this.#forward()) this.#options.to.moved();
  }

  close(): void {
    this.#over.abort();
    this.#queue = [];
    this.#waitingBytes = 0;
    this.#part.take();
    this.#partBytes = 0;
    this.#isDeciding = false;
  }

  /** Returns where the next part of the piece starts. */
  #read(piece: Buffer, from: number): number {
    if (this.#passingBytes > 0) {
      const end = Math.min(piece.length, from + this.#passingBytes);
      this.#passingBytes -= end - from;
      this.#push({ bytes: piece.subarray(from, end), isMessage: false });
      return end;
    }
    const end = Math.min(piece.length, from + this.#wantedBytes - this.#partBytes);
    this.#part.add(piece.subarray(from, end));
    this.#partBytes += end - from;
    if (this.#partBytes === PREFIX_BYTES && this.#wantedBytes === PREFIX_BYTES) this.#readPrefix();
    if (this.#partBytes > 0 && this.#partBytes === this.#wantedBytes) this.#enqueue(true);
    return end;
  }

  #readPrefix(): void {
    const { limitBytes, onNote } = this.#options;
    const prefix = joined(this.#part.list);
    const sizeBytes = prefix.readUInt32BE(1);
    if (prefix.readUInt8(0) > COMPRESSED) {
      onNote("bytes that are no gRPC message are forwarded unchanged, with everything behind them");
      this.#passingBytes = Number.POSITIVE_INFINITY;
      this.#enqueue(false);
    } else if (sizeBytes > limitBytes) {
      onNote(`gRPC messages over ${limitBytes} bytes are forwarded unchanged`);
      this.#passingBytes = sizeBytes;
      this.#enqueue(false);
    } else {
      this.#wantedBytes = PREFIX_BYTES + sizeBytes;
    }
  }

  #enqueue(isMessage: boolean): void {
    this.#push({ bytes: joined(this.#part.take()), isMessage });
    this.#partBytes = 0;
    this.#wantedBytes = PREFIX_BYTES;
  }

  #push(queued: Queued): void {
    this.#queue.push(queued);
    this.#waitingBytes += queued.bytes.length;
  }

  /** Forwards what needs no decision, and asks for the next one. True: something was forwarded. */
  #forward(): boolean {
    const { decider } = this.#options;
    let hasForwarded = false;
    while (!this.#isDeciding && !this.#isBlocked) {
      const [first] = this.#queue;
      if (first === undefined) break;
      if (first.isMessage && decider.gates()) this.#ask(first.bytes);
      else this.#sendFirst(first.bytes);
      hasForwarded ||= !this.#isDeciding;
    }
    return hasForwarded;
  }

  #ask(frame: Buffer): void {
    const { to } = this.#options;
    this.#isDeciding = true;
    whenDecided(
      this.#decide(frame),
      (bytes) => {
        if (this.#over.signal.aborted) return;
        this.#isDeciding = false;
        this.#sendFirst(bytes);
        this.#forward();
        to.moved();
      },
      (error) => to.failed(error),
    );
  }

  /** Returns the frame to send instead; undefined to send none. */
  async #decide(frame: Buffer): Promise<Buffer | undefined> {
    const message = await this.#plain(frame);
    if (message === undefined) return frame;
    const verdict = await this.#options.decider.decide(message, this.#over.signal);
    if (verdict.kind === "drop") return undefined;
    return verdict.kind === "pass" ? frame : frameMessage(verdict.payload);
  }

  /** The message without compression; undefined if that cannot be undone. */
  async #plain(frame: Buffer): Promise<Buffer | undefined> {
    const { encoding, limitBytes, onNote } = this.#options;
    const message = frame.subarray(PREFIX_BYTES);
    if (frame.readUInt8(0) !== COMPRESSED) return message;
    if (encoding === "identity") {
      onNote("gRPC messages that are compressed without grpc-encoding are forwarded unchanged");
      return undefined;
    }
    const { bytes, stop } =
      decompressSync(message, encoding, Math.min(AT_ONCE_BYTES, limitBytes)) ??
      (await decompress(message, encoding, limitBytes));
    switch (stop) {
      case undefined:
        return bytes;
      case "limit":
        onNote(`gRPC messages over ${limitBytes} bytes are forwarded unchanged`);
        return undefined;
      case "unsupported":
        onNote(`gRPC messages in ${shown(encoding)} are forwarded unchanged`);
        return undefined;
      case "damaged":
        onNote(`gRPC messages that are no valid ${encoding} are forwarded unchanged`);
        return undefined;
    }
  }

  /** Removes the first in the queue and sends `bytes` for it. */
  #sendFirst(bytes: Buffer | undefined): void {
    this.#waitingBytes -= this.#queue.shift()?.bytes.length ?? 0;
    if (bytes !== undefined) this.#isBlocked = !this.#options.to.take(bytes);
  }
}

function joined(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces;
  return only !== undefined && pieces.length === 1 ? only : Buffer.concat(pieces);
}
