import { hasBody, lengthFraming } from "@headworks/http1";
import type { Framing } from "@headworks/http1";
import type { Content } from "#exchange/exchange.ts";

const TOO_LARGE: Content = { kind: "too-large" };
const GONE: Content = { kind: "gone" };

interface Waiter {
  readonly limitBytes: number;
  readonly tell: (content: Content) => void;
}

/** The pieces of a body that are kept back while rules decide, and whoever waits until they are all there. */
export class HeldBody {
  /** How the body as it is held now is delimited. */
  framing: Framing;
  #pieces: Buffer[] = [];
  #sizeBytes = 0;
  #isComplete: boolean;
  #waiting: Waiter[] = [];

  constructor(framing: Framing, isComplete: boolean) {
    this.framing = framing;
    this.#isComplete = isComplete || !hasBody(framing);
  }

  /** Somebody waits for the rest. */
  get isWanted(): boolean {
    return this.#waiting.length > 0;
  }

  /**
   * Resolves when the body is complete, larger than `limitBytes`, or not going to come. `onWanted` is called when more
   * of it has to be read for that.
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

  /** A piece came. False: nobody waits for more of them; whoever waited is told that the body is too large. */
  add(piece: Buffer): boolean {
    this.#pieces.push(piece);
    this.#sizeBytes += piece.length;
    if (this.#waiting.length > 0) this.#tell(TOO_LARGE, ({ limitBytes }) => this.#sizeBytes > limitBytes);
    return this.isWanted;
  }

  /** The last piece came. */
  end(): void {
    this.#isComplete = true;
    if (this.isWanted) this.#tell({ kind: "complete", bytes: this.joined() });
  }

  /** The exchange is over. */
  abandon(): void {
    this.#pieces = [];
    this.#tell(GONE);
  }

  /**
   * Another body takes the place of this one.
   * @throws TypeError when more of this one is still going to come
   */
  replace(bytes: Buffer): void {
    if (!this.#isComplete) throw new TypeError("A body is replaced after it was waited for");
    this.#pieces = bytes.length === 0 ? [] : [bytes];
    this.#sizeBytes = bytes.length;
    if (bytes.length > 0 || this.framing.kind !== "none") this.framing = lengthFraming(bytes.length);
  }

  /** All bytes so far as one; they stay held. */
  joined(): Buffer {
    const [only] = this.#pieces;
    if (only !== undefined && this.#pieces.length === 1) return only;
    const joined = Buffer.concat(this.#pieces);
    if (joined.length > 0) this.#pieces = [joined];
    return joined;
  }

  /** Gives the pieces away. */
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

/** Whether a body is known to be longer than that before it comes. */
export function isKnownLonger(framing: Framing, limitBytes: number): boolean {
  return framing.kind === "length" && framing.lengthBytes > limitBytes;
}
