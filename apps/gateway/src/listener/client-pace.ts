import { MinimumRate, turnMs } from "@headworks/sockets";
import type { ConnectionServices } from "./connection-services.ts";

/**
 * How fast one client of HTTP/1, or one stream of HTTP/2, sends what it owes and takes what waits for it: by when something
 * has to move, the least rates of both directions, and the memory in which its response may wait.
 */
export class ClientPace {
  /** Bytes of request bodies that came so far. */
  bodyBytes = 0;
  /** By when something has to move. */
  stillDeadlineMs = Number.POSITIVE_INFINITY;
  readonly #services: ConnectionServices;
  readonly #takenBytesNow: () => number;
  /** Made for the first body that is waited for. */
  #requestRate: MinimumRate | undefined;
  /** Made for the first response that waits. */
  #responseRate: MinimumRate | undefined;
  /** What the client had taken when that was last looked at. */
  #takenBytes = 0;
  #bufferedBytes = 0;

  /** @param takenBytesNow  what the client took so far */
  constructor(services: ConnectionServices, takenBytesNow: () => number) {
    this.#services = services;
    this.#takenBytesNow = takenBytesNow;
  }

  /** When the next look at it is due. */
  get deadlineMs(): number {
    return Math.min(
      this.stillDeadlineMs,
      this.#requestRate?.deadlineMs ?? Number.POSITIVE_INFINITY,
      this.#responseRate?.deadlineMs ?? Number.POSITIVE_INFINITY,
    );
  }

  waitForBody(): void {
    const { requestRate } = this.#services.timeouts;
    if (requestRate.bytesPerS === 0) return;
    this.#requestRate ??= new MinimumRate(requestRate);
    this.#requestRate.wait(turnMs(), this.bodyBytes);
  }

  /** Nothing of the body is waited for now. */
  bodyRests(): void {
    this.#requestRate?.rest(turnMs());
  }

  /** The body is whole, or it is unknown whether more of it is wanted. */
  bodyEnds(): void {
    this.#requestRate?.end();
  }

  /** Whether the body came at less than its rate, which is counted. */
  isBodyTooSlow(nowMs: number): boolean {
    if (this.#requestRate?.isTooSlow(nowMs, this.bodyBytes) !== true) return false;
    this.#services.slowClients.requests += 1;
    return true;
  }

  /** A response waits for the client. */
  waitForTaking(): void {
    const { responseRate } = this.#services.timeouts;
    if (responseRate.bytesPerS === 0) return;
    this.#responseRate ??= new MinimumRate(responseRate);
    if (this.#responseRate.deadlineMs !== Number.POSITIVE_INFINITY) return;
    this.#takenBytes = this.#takenBytesNow();
    this.#responseRate.wait(turnMs(), this.#takenBytes);
  }

  /** Nothing waits for the client any more. */
  taken(): void {
    this.giveBack();
    this.#responseRate?.rest(turnMs());
  }

  /** What the client does about a response that waits for it; `slow` is counted. */
  taking(nowMs: number): "moving" | "still" | "slow" {
    const takenBytes = this.#takenBytesNow();
    const isMoving = takenBytes !== this.#takenBytes;
    this.#takenBytes = takenBytes;
    if (this.#responseRate?.isTooSlow(nowMs, takenBytes) === true) {
      this.#services.slowClients.responses += 1;
      return "slow";
    }
    return isMoving ? "moving" : "still";
  }

  /** Whether all waiting bytes may be buffered here, so that the endpoint need not be held back. */
  mayBuffer(waitingBytes: number, maxBytes: number): boolean {
    if (waitingBytes >= maxBytes) return false;
    if (waitingBytes <= this.#bufferedBytes) return true;
    if (!this.#services.buffers.take(waitingBytes - this.#bufferedBytes)) return false;
    this.#bufferedBytes = waitingBytes;
    return true;
  }

  /** Gives memory back; must be called when the connection or stream is over. */
  giveBack(): void {
    if (this.#bufferedBytes === 0) return;
    this.#services.buffers.giveBack(this.#bufferedBytes);
    this.#bufferedBytes = 0;
  }
}
