import { ChunkScanner, type ChunkRules, type ChunkSink } from "./chunk-scanner.ts";
import { HeadCollector } from "./head-collector.ts";
import { Http1Error } from "./http1-error.ts";
import { NO_BODY, type Framing, type Limits, type RawFields } from "./message.ts";

/** Receives messages. Called synchronously from `read` and `end`. */
export interface MessageSink<Head> {
  onHead(head: Head): void;
  /** A non-empty view of the input buffer: copy it to keep it beyond the call. */
  onData(data: Buffer): void;
  /** The allowed trailer fields, if any; called before `onEnd`. */
  onTrailers?(fields: RawFields): void;
  onEnd(): void;
  /**
   * Called at most once, and last.
   * @param headText  the refused head as received, one character per byte; empty for errors after the head
   */
  onError(error: Http1Error, headText: string): void;
}

export type ReaderState = "head" | "body" | "ended" | "failed";

/** Common part of the request and response readers: bodies, ends, failures, pausing. */
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

  /** Part of a head has arrived: the head timeout applies. */
  get hasPartialHead(): boolean {
    return this.#state === "head" && this.collector.heldBytes > 0;
  }

  /** `read` returns after the current callback and takes no more input until `resume`. */
  pause(): void {
    this.#paused = true;
  }

  /** Allows `read` again; the owner passes the remaining input. */
  resume(): void {
    this.#paused = false;
  }

  get isPaused(): boolean {
    return this.#paused;
  }

  /**
   * Reads from `offset` and returns the offset up to which input was taken. Reading stops at the end of a message
   * (state `ended`, even if the sink called `next` meanwhile) and after `pause`; the owner keeps the rest. After a
   * refused message (`failed`) all input is discarded.
   */
  read(chunk: Buffer, offset = 0): number {
    const endedCount = this.#endedCount;
    let at = offset;
    try {
      // Compares the count, not the state: the sink may have called `next`, or even read on, inside a callback.
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

  /** Prepares for the next message; only after the current one ended. */
  next(): void {
    if (this.#state === "ended") this.#state = "head";
  }

  /** The peer closed: ends an until-close body; an error inside any other message. */
  end(): void {
    if (this.#state === "body") {
      if (this.#framing.kind === "until-close" || this.endsWithoutLastLine()) this.#finish();
      else this.fail(this.asError("truncated"));
    } else if (this.#state === "head" && this.collector.heldBytes > 0) {
      this.fail(this.asError("truncated"));
    }
  }

  /** Parses a head and calls `beginBody`; returns the new offset, at least `at + 1`. */
  protected abstract readHead(chunk: Buffer, at: number): number;
  /** Parses a complete trailer section and returns the fields to deliver. */
  protected abstract parseTrailers(text: string): RawFields;
  protected abstract asError(code: Http1Error["code"]): Http1Error;

  /** Whether a body that lacks only its final empty line may end here. */
  protected endsWithoutLastLine(): boolean {
    return false;
  }

  protected get onlyLastLineMissing(): boolean {
    return this.#framing.kind === "chunked" && this.#chunks?.onlyLastLineMissing === true;
  }

  /** Delivers the head, then expects its body or ends the message. */
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

  /** Puts the reader into its final state; further calls of `read` and `end` have no effect. */
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
