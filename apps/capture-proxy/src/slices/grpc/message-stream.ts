import { createContentDecoder, parseContentEncoding } from "@headworks/http-fields/content-coding";
import type { ContentDecoder } from "@headworks/http-fields/content-coding";
import { Base64Reader, decompress, decompressSync, MessageReader } from "@headworks/grpc-framing";
import type { CallForm, DecompressionStop, ReaderEnd, WireMessage } from "@headworks/grpc-framing";
import type { BodyWatcher } from "#exchange/body.ts";

/** A message to be recorded. */
export interface ReadMessage {
  readonly isTrailer: boolean;
  readonly isCompressed: boolean;
  /** Decompressed, up to the limit; still compressed if `stop` says why decompression failed. */
  readonly bytes: Buffer;
  /** Decompressed size; of a message cut during decompression, the known part. */
  readonly sizeBytes: number;
  /** Includes the prefix. */
  readonly wireBytes: number;
  /** False for the last message of a body that ended inside it. */
  readonly isWhole: boolean;
  readonly stop: DecompressionStop | "behind" | undefined;
}

export interface MessageStreamOptions {
  readonly form: CallForm;
  readonly encoding: string;
  /** HTTP content codings of the whole body; some proxies add them to gRPC-Web. */
  readonly contentEncoding: readonly string[];
  readonly maxMessageBytes: number;
  /** `isReplaced`: a rule replaced the original body. */
  readonly onMessage: (message: ReadMessage, isReplaced: boolean) => void;
  readonly onEnd: (end: ReaderEnd) => void;
  readonly onFault: (error: unknown) => void;
}

/** Messages up to this size are decompressed synchronously, larger ones on zlib's threads in their order. */
const AT_ONCE_BYTES = 65_536;
/** Maximum bytes queued for zlib's threads; beyond it messages are recorded compressed. */
const MAX_WAITING_BYTES = 16_777_216;
const PREFIX_BYTES = 5;

/** Reads the messages of one body as it passes. */
export class MessageStream implements BodyWatcher {
  readonly #options: MessageStreamOptions;
  #reader: MessageReader;
  #base64: Base64Reader | undefined;
  #decoder: ContentDecoder | undefined;
  /** Pending work; undefined if there is none and everything runs synchronously. */
  #tail: Promise<void> | undefined;
  #waitingBytes = 0;
  #isReplaced = false;
  #hasEnded = false;

  constructor(options: MessageStreamOptions) {
    this.#options = options;
    this.#reader = this.#newReader();
    this.#begin();
  }

  piece(bytes: Buffer): void {
    const decoder = this.#decoder;
    if (decoder === undefined) return this.#read(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) throw new RangeError("A coded body comes faster than it is decoded");
    this.#later(async () => {
      await decoder.write(bytes);
      this.#waitingBytes -= bytes.length;
    });
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const decoder = this.#decoder;
    if (decoder !== undefined) this.#later(async () => void (await decoder.end()));
    this.#afterwards(() => this.#finish());
  }

  replaced(): void {
    this.#afterwards(() => {
      this.#isReplaced = true;
      this.#reader = this.#newReader();
      this.#begin();
    });
  }

  failed(error: unknown): void {
    this.#options.onFault(error);
    this.#hasEnded = true;
  }

  /** Resolves when all messages are recorded; undefined if they already are. */
  settled(): Promise<void> | undefined {
    return this.#tail === undefined ? undefined : this.#drained();
  }

  async #drained(): Promise<void> {
    while (this.#tail !== undefined) await this.#tail;
  }

  #begin(): void {
    const { form, contentEncoding } = this.#options;
    this.#base64 = form.isText ? new Base64Reader() : undefined;
    this.#decoder =
      parseContentEncoding(contentEncoding).length === 0
        ? undefined
        : createContentDecoder(contentEncoding, (bytes) => this.#read(Buffer.from(bytes)));
  }

  #newReader(): MessageReader {
    const { form, maxMessageBytes } = this.#options;
    const options = { maxKeptBytes: maxMessageBytes, allowsTrailers: form.protocol === "web" };
    return new MessageReader(options, (message) => this.#take(message, true));
  }

  #read(bytes: Buffer): void {
    this.#reader.push(this.#base64?.push(bytes) ?? bytes);
  }

  #finish(): void {
    const rest = this.#base64?.end();
    if (rest !== undefined) this.#reader.push(rest);
    const end: ReaderEnd =
      this.#base64?.isBroken === true ? { kind: "broken", reason: "what came is no base64" } : this.#reader.end();
    if (end.kind === "cut" && end.sizeBytes !== undefined) {
      const { sizeBytes, bytes } = end;
      this.#take({ flags: 0, isCompressed: false, isTrailer: false, sizeBytes, bytes }, false);
    }
    this.#afterwards(() => this.#options.onEnd(end));
  }

  #take(message: WireMessage, isWhole: boolean): void {
    const { encoding, maxMessageBytes } = this.#options;
    const isKept = message.bytes.length === message.sizeBytes;
    if (!message.isCompressed || !isKept) return this.#give(message, isWhole, message.bytes, undefined);
    const quick = decompressSync(message.bytes, encoding, Math.min(AT_ONCE_BYTES, maxMessageBytes));
    if (quick !== undefined) return this.#give(message, isWhole, quick.bytes, quick.stop);
    if (this.#waitingBytes + message.bytes.length > MAX_WAITING_BYTES) {
      return this.#give(message, isWhole, message.bytes, "behind");
    }
    this.#waitingBytes += message.bytes.length;
    this.#later(async () => {
      const { bytes, stop } = await decompress(message.bytes, encoding, maxMessageBytes);
      this.#waitingBytes -= message.bytes.length;
      this.#hand(message, isWhole, bytes, stop);
    });
  }

  /** Delivers a message after those before it. */
  #give(message: WireMessage, isWhole: boolean, bytes: Buffer, stop: ReadMessage["stop"]): void {
    if (this.#tail === undefined) return this.#hand(message, isWhole, bytes, stop);
    const isTooMuch = this.#waitingBytes + bytes.length > MAX_WAITING_BYTES;
    const kept = isTooMuch ? bytes.subarray(0, 0) : bytes;
    this.#waitingBytes += kept.length;
    this.#later(async () => {
      this.#waitingBytes -= kept.length;
      this.#hand(message, isWhole, kept, isTooMuch ? "behind" : stop);
    });
  }

  #hand(message: WireMessage, isWhole: boolean, bytes: Buffer, stop: ReadMessage["stop"]): void {
    const { isTrailer, isCompressed, sizeBytes } = message;
    const isOpen = isCompressed && message.bytes.length === sizeBytes && stop !== "damaged" && stop !== "unsupported";
    this.#options.onMessage(
      {
        isTrailer,
        isCompressed,
        bytes,
        sizeBytes: isOpen && stop !== "behind" ? bytes.length : sizeBytes,
        wireBytes: sizeBytes + PREFIX_BYTES,
        isWhole,
        stop,
      },
      this.#isReplaced,
    );
  }

  /** Runs `work` after pending work, synchronously if there is none. */
  #afterwards(work: () => void): void {
    if (this.#tail === undefined) work();
    else this.#later(async () => work());
  }

  #later(work: () => Promise<void>): void {
    const tail: Promise<void> = (this.#tail ?? Promise.resolve()).then(work).catch((error: unknown) => {
      this.#options.onFault(error);
    });
    this.#tail = tail;
    void tail.then(() => {
      if (this.#tail === tail) this.#tail = undefined;
    });
  }
}
