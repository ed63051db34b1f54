import { hasBody, lengthFraming } from "@headworks/http1";
import type { Framing } from "@headworks/http1";
import type { Content } from "#exchange/exchange.ts";

const TOO_LARGE: Content = { kind: "too-large" };
const GONE: Content = { kind: "gone" };

interface Waiter {
  readonly limitBytes: number;
  readonly tell: (content: Content) => void;
}

/** A body buffered while interceptors decide, and the pending promise for its complete content. */
export class HeldBody {
  /** Framing of the body as it is buffered now. */
  framing: Framing;
  #pieces: Buffer[] = [];
  #sizeBytes = 0;
  #isComplete: boolean;
  #waiting: Waiter[] = [];

  constructor(framing: Framing, isComplete: boolean) {
    this.framing = framing;
    this.#isComplete = isComplete || !hasBody(framing);
  }

  /** A `content` promise is pending. */
  get isWanted(): boolean {
    return this.#waiting.length > 0;
  }

  /**
   * Resolves when the body is complete, exceeds `limitBytes`, or will not arrive. `onWanted` is called when more of it
   * must be read.
   */
  content(limitBytes: number, isFinished: boolean, onWanted: () => void): Promise<Content> {
    if (isFinished) return Promise.resolve(GONE);
    if (this.#sizeBytes > limitBytes) return Promise.resolve(TOO_LARGE);
    if (this.#isComplete) return Promise.resolve({ kind: "complete", bytes: this.joined() });
    if (isKnownLonger(this.framing, limitBytes)) return Promise.resolve(TOO_LARGE);
    return new Promise((tell) => {
      this.#waiting.push({ limitBytes, tell });
      onWanted();
    });
  }

  /**
   * Buffers a piece. False: no promise is pending, so reading may pause. A body over the limit resolves the pending
   * promise as too large.
   */
  add(piece: Buffer): boolean {
    this.#pieces.push(piece);
    this.#sizeBytes += piece.length;
    if (this.#waiting.length > 0) this.#tell(TOO_LARGE, ({ limitBytes }) => this.#sizeBytes > limitBytes);
    return this.isWanted;
  }

  end(): void {
    this.#isComplete = true;
    if (this.isWanted) this.#tell({ kind: "complete", bytes: this.joined() });
  }

  /** The exchange is over: resolves what is pending. */
  abandon(): void {
    this.#pieces = [];
    this.#tell(GONE);
  }

  /**
   * Replaces the body.
   * @throws TypeError while more of the original body is still expected
   */
  replace(bytes: Buffer): void {
    if (!this.#isComplete) throw new TypeError("A body is replaced after it was waited for");
    this.#pieces = bytes.length === 0 ? [] : [bytes];
    this.#sizeBytes = bytes.length;
    if (bytes.length > 0 || this.framing.kind !== "none") this.framing = lengthFraming(bytes.length);
  }

  /** All bytes so far in one buffer; they stay buffered. */
  joined(): Buffer {
    const [only] = this.#pieces;
    if (only !== undefined && this.#pieces.length === 1) return only;
    const joined = Buffer.concat(this.#pieces);
    if (joined.length > 0) this.#pieces = [joined];
    return joined;
  }

  /** Removes and returns the buffered pieces. */
  take(): readonly Buffer[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#sizeBytes = 0;
    return pieces;
  }

  #tell(content: Content, concerns: (waiter: Waiter) => boolean = () => true): void {
    const told = this.#waiting.filter(concerns);
    this.#waiting = this.#waiting.filter((waiter) => !told.includes(waiter));
    for (const { tell } of told) tell(content);
  }
}

/** Whether the declared length already exceeds the limit. */
export function isKnownLonger(framing: Framing, limitBytes: number): boolean {
  return framing.kind === "length" && framing.lengthBytes > limitBytes;
}
