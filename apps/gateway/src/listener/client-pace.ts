import { MinimumRate, turnMs } from "@headworks/sockets";
import type { ConnectionServices } from "./connection-services.ts";

/**
 * Timing of one HTTP/1 client or one HTTP/2 stream: deadlines for progress, minimum rates of both directions, and the
 * memory for its buffered response.
 */
export class ClientPace {
  /** Bytes of request bodies received so far. */
  bodyBytes = 0;
  /** Deadline for the next progress. */
  stillDeadlineMs = Number.POSITIVE_INFINITY;
  readonly #services: ConnectionServices;
  readonly #takenBytesNow: () => number;
  /** Created for the first awaited body. */
  #requestRate: MinimumRate | undefined;
  /** Created for the first buffered response. */
  #responseRate: MinimumRate | undefined;
  /** Bytes that the client had taken at the last check. */
  #takenBytes = 0;
  #bufferedBytes = 0;

  constructor(services: ConnectionServices, takenBytesNow: () => number) {
    this.#services = services;
    this.#takenBytesNow = takenBytesNow;
  }

  /** When the next check is due. */
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

  /** No body bytes are awaited now. */
  bodyRests(): void {
    this.#requestRate?.rest(turnMs());
  }

  /** The body is complete, or it is unknown whether more of it will be read. */
  bodyEnds(): void {
    this.#requestRate?.end();
  }

  /** Whether the body arrived below its minimum rate, which is counted. */
  isBodyTooSlow(nowMs: number): boolean {
    if (this.#requestRate?.isTooSlow(nowMs, this.bodyBytes) !== true) return false;
    this.#services.slowClients.requests += 1;
    return true;
  }

  /** Response bytes are buffered for the client. */
  waitForTaking(): void {
    const { responseRate } = this.#services.timeouts;
    if (responseRate.bytesPerS === 0) return;
    this.#responseRate ??= new MinimumRate(responseRate);
    if (this.#responseRate.deadlineMs !== Number.POSITIVE_INFINITY) return;
    this.#takenBytes = this.#takenBytesNow();
    this.#responseRate.wait(turnMs(), this.#takenBytes);
  }

  /** Nothing is buffered for the client any more. */
  taken(): void {
    this.release();
    this.#responseRate?.rest(turnMs());
  }

  /** How the client takes its buffered response; `slow` is counted. */
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

  /** Whether all waiting bytes may be buffered here, so that the endpoint need not be paused. */
  mayBuffer(waitingBytes: number, maxBytes: number): boolean {
    if (waitingBytes >= maxBytes) return false;
    if (waitingBytes <= this.#bufferedBytes) return true;
    if (!this.#services.buffers.reserve(waitingBytes - this.#bufferedBytes)) return false;
    this.#bufferedBytes = waitingBytes;
    return true;
  }

  /** Releases memory; must be called at the end of the connection or stream. */
  release(): void {
    if (this.#bufferedBytes === 0) return;
    this.#services.buffers.release(this.#bufferedBytes);
    this.#bufferedBytes = 0;
  }
}
