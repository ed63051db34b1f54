import type { Http2Stream, StreamHandler } from "../src/index.ts";
import { within } from "./within.ts";

/** Notes what a stream tells, and complains of what it may not. */
export class StreamRecorder implements StreamHandler {
  readonly stream: Http2Stream;
  /** In order: "section", "data", "trailers", "end", "drain", "close". */
  readonly order: string[] = [];
  readonly sections: string[][] = [];
  readonly closed: Promise<number>;
  trailers: string[] | undefined;
  isWhole = false;
  dataBytes = 0;
  /** Calls that broke a promise. */
  readonly broken: string[] = [];
  onDataReceived: ((recorder: StreamRecorder) => void) | undefined;
  onDrained: ((recorder: StreamRecorder) => void) | undefined;
  onEnded: ((recorder: StreamRecorder) => void) | undefined;
  onHead: ((recorder: StreamRecorder) => void) | undefined;
  readonly #pieces: Buffer[] = [];
  readonly #resolve: (code: number) => void;
  readonly #waiting = new Set<() => void>();

  constructor(stream: Http2Stream) {
    this.stream = stream;
    stream.handler = this;
    const { promise, resolve } = Promise.withResolvers<number>();
    this.closed = promise;
    this.#resolve = resolve;
  }

  get body(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  get isClosed(): boolean {
    return this.order.includes("close");
  }

  onSection(fields: string[], isWhole: boolean): void {
    this.#note("section", ["data", "trailers", "end"]);
    this.sections.push(fields);
    this.isWhole = isWhole;
    this.onHead?.(this);
    this.#wake();
  }

  onData(piece: Buffer): void {
    this.#note("data", ["trailers", "end"]);
    if (this.stream.isHeld) this.broken.push("data while held");
    if (this.isWhole) this.broken.push("data behind a section that was whole");
    this.#pieces.push(piece);
    this.dataBytes += piece.length;
    this.onDataReceived?.(this);
    this.#wake();
  }

  onTrailers(fields: string[]): void {
    this.#note("trailers", ["trailers", "end"]);
    if (this.stream.isHeld) this.broken.push("trailers while held");
    this.trailers = fields;
  }

  onEnd(): void {
    this.#note("end", ["end"]);
    if (this.isWhole) this.broken.push("end behind a section that was whole");
    this.onEnded?.(this);
    this.#wake();
  }

  onDrain(): void {
    this.#note("drain", []);
    this.onDrained?.(this);
  }

  onClose(code: number): void {
    this.#note("close", []);
    this.#resolve(code);
    this.#wake();
  }

  /** Waits until this holds. */
  async until(what: string, holds: (recorder: StreamRecorder) => boolean): Promise<void> {
    while (!holds(this)) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const wake = (): void => resolve(undefined);
      this.#waiting.add(wake);
      await within(promise, () => `${what} did not come (${this.order.slice(-5).join(", ")}; ${this.dataBytes} bytes)`);
      this.#waiting.delete(wake);
    }
  }

  async code(): Promise<number> {
    return await within(this.closed, () => `stream ${this.stream.id} was not closed (${this.order.slice(-5).join()})`);
  }

  #note(what: string, notBehind: readonly string[]): void {
    for (const earlier of ["close", ...notBehind]) {
      if (this.order.includes(earlier)) this.broken.push(`${what} behind ${earlier}`);
    }
    if (this.order.at(-1) !== what || what === "close" || what === "section") this.order.push(what);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}
