import { ChunkScanner, type ChunkRules, type ChunkSink } from "./chunk-scanner.ts";
import { HeadCollector } from "./head-collector.ts";
import { Http1Error } from "./http1-error.ts";
import { NO_BODY, type Framing, type Limits, type RawFields } from "./message.ts";

/** Receives one message after the other. Calls come synchronously out of `read`, `end`. */
export interface MessageSink<Head> {
  onHead(head: Head): void;
  /** A view of the buffer that was read, never empty and not copied: copy it to keep it beyond the call. */
  onData(data: Buffer): void;
  /** Trailer fields that passed the checks; called before `onEnd`, only when there are any. */
  onTrailers?(fields: RawFields): void;
  onEnd(): void;
  /**
   * At most once, and the last call of all.
   * @param headText  what came of a head that was refused, one character per byte; empty behind a head
   */
  onError(error: Http1Error, headText: string): void;
}

/** Where a reader is in its present message. */
export type ReaderState = "head" | "body" | "ended" | "failed";

/** What the request reader and the response reader have in common: bodies, ends, failure, pausing. */
export abstract class MessageReader<Head> {
  protected readonly sink: MessageSink<Head>;
  protected readonly limits: Limits;
  protected readonly collector: HeadCollector;
  readonly #rules: ChunkRules;
  #state: ReaderState = "head";
  #framing: Framing = NO_BODY;
  #remainingBytes = 0;
  #paused = false;
  #endedCount = 0;
  #chunks: ChunkScanner | undefined;

  constructor(sink: MessageSink<Head>, limits: Limits, rules: ChunkRules) {
    this.sink = sink;
    this.limits = limits;
    this.#rules = rules;
    this.collector = new HeadCollector(limits.headBytes, rules.tolerate !== undefined);
  }

  get state(): ReaderState {
    return this.#state;
  }

  /** Some, but not all, bytes of a head have come: the time to wait for it is running. */
  get hasPartialHead(): boolean {
    return this.#state === "head" && this.collector.heldBytes > 0;
  }

  /** `read` returns after the present callback and takes nothing until `resume`. */
  pause(): void {
    this.#paused = true;
  }

  /** `read` takes bytes again; the owner passes it what was left over. */
  resume(): void {
    this.#paused = false;
  }

  get isPaused(): boolean {
    return this.#paused;
  }

  /**
   * Reads from `offset` and returns the offset up to which bytes were taken. All of them, except that reading stops
   * behind the end of a message (state `ended`, also when the sink called `next` meanwhile) and after `pause`;
   * the rest stays with the owner. A refused message (`failed`) swallows everything.
   */
  read(chunk: Buffer, offset = 0): number {
    const endedCount = this.#endedCount;
    let at = offset;
    try {
      // The count rather than the state: the sink may have called `next`, or even read on, from inside a callback.
      while (at < chunk.length && !this.#paused && this.#endedCount === endedCount) {
        if (this.#state === "head") at = this.readHead(chunk, at);
        else if (this.#state === "body") at = this.#readBody(chunk, at);
        else return this.#state === "failed" ? chunk.length : at;
      }
      return at;
    } catch (error) {
      if (!(error instanceof Http1Error)) throw error;
      this.fail(error);
      return chunk.length;
    }
  }

  /** Ready for the next message; only after the present one ended. */
  next(): void {
    if (this.#state === "ended") this.#state = "head";
  }

  /** The peer will send nothing more: the end of an until-close body, an error inside any other message. */
  end(): void {
    if (this.#state === "body") {
      if (this.#framing.kind === "until-close" || this.endsWithoutLastLine()) this.#finish();
      else this.fail(this.asError("truncated"));
    } else if (this.#state === "head" && this.collector.heldBytes > 0) {
      this.fail(this.asError("truncated"));
    }
  }

  /** Parses what it finds and calls `beginBody`; returns the new offset, at least `at + 1`. */
  protected abstract readHead(chunk: Buffer, at: number): number;
  /** Parses a trailer section, already complete; returns what may be delivered. */
  protected abstract parseTrailers(text: string): RawFields;
  protected abstract asError(code: Http1Error["code"]): Http1Error;

  /** Whether a body that lacks only its closing empty line may end here. */
  protected endsWithoutLastLine(): boolean {
    return false;
  }

  protected get onlyLastLineMissing(): boolean {
    return this.#framing.kind === "chunked" && this.#chunks?.onlyLastLineMissing === true;
  }

  /** The head is complete: delivers it, then waits for its body or ends the message at once. */
  protected beginBody(head: Head, framing: Framing): void {
    this.collector.reset();
    this.#framing = framing;
    this.#state = "body";
    switch (framing.kind) {
      case "length":
        this.#remainingBytes = framing.lengthBytes;
        break;
      case "chunked":
        this.#chunks ??= new ChunkScanner(this.#chunkSink(), this.#rules, this.limits);
        this.#chunks.reset();
        break;
      default:
    }
    this.sink.onHead(head);
    if (framing.kind === "none" || (framing.kind === "length" && framing.lengthBytes === 0)) this.#finish();
  }

  /** Ends the reader for good. Further calls of `read` and `end` do nothing. */
  protected fail(error: Http1Error): void {
    if (this.#state === "failed") return;
    this.#state = "failed";
    const headText = this.collector.seen;
    this.collector.reset();
    this.sink.onError(this.asError(error.code), headText);
  }

  #readBody(chunk: Buffer, at: number): number {
    switch (this.#framing.kind) {
      case "length": {
        const end = Math.min(chunk.length, at + this.#remainingBytes);
        this.#remainingBytes -= end - at;
        this.sink.onData(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end));
        if (this.#remainingBytes === 0) this.#finish();
        return end;
      }
      case "chunked": {
        const chunks = this.#chunks;
        if (chunks === undefined) return chunk.length;
        const end = chunks.read(chunk, at);
        if (chunks.done) this.#finish();
        return end;
      }
      default:
        this.sink.onData(at === 0 ? chunk : chunk.subarray(at));
        return chunk.length;
    }
  }

  #finish(): void {
    this.#state = "ended";
    this.#endedCount++;
    this.sink.onEnd();
  }

  #chunkSink(): ChunkSink {
    return {
      onChunkData: (data) => this.sink.onData(data),
      onTrailerSection: (text) => {
        const fields = this.parseTrailers(text);
        if (fields.length > 0) this.sink.onTrailers?.(fields);
      },
    };
  }
}
