import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import { loggedBody } from "./body-text.ts";
import type { BodyInput } from "./body-text.ts";
import type { WatchedBody } from "./watched-body.ts";

export interface TrafficEvent {
  readonly facts: Readonly<Record<string, unknown>>;
  readonly message: string;
  /** The body's size, type and text follow the message. */
  readonly body?: PendingBody | undefined;
}

export interface PendingBody {
  readonly watched: WatchedBody;
  readonly input: Omit<BodyInput, "pieces" | "sizeBytes" | "isCut">;
}

const MAX_WAITING = 4096;
/** Events processed before yielding to other work. */
const EVENTS_PER_TURN = 32;

/**
 * Logs traffic asynchronously: events queue in bounded memory, bodies are decoded on other threads and converted to
 * text piece by piece. Events beyond the limit are dropped and counted in the log.
 */
export class TrafficLog {
  logged = 0;
  dropped = 0;
  readonly #log: Pick<Logger, "info" | "warn">;
  readonly #disk: { readonly isBehind: boolean; settled(): Promise<void> } | undefined;
  #waiting: TrafficEvent[] = [];
  /** Events dequeued but not logged yet. */
  #inTurn = 0;
  #announced = 0;
  #isDraining = false;

  constructor(
    log: Pick<Logger, "info" | "warn">,
    disk: { readonly isBehind: boolean; settled(): Promise<void> } | undefined,
  ) {
    this.#log = log;
    this.#disk = disk;
  }

  get waiting(): number {
    return this.#waiting.length + this.#inTurn;
  }

  add(event: TrafficEvent): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.dropped += 1;
      event.body?.watched.release();
      return;
    }
    this.#waiting.push(event);
    if (this.#isDraining) return;
    this.#isDraining = true;
    void this.#drain();
  }

  async #drain(): Promise<void> {
    // Keeps this work out of the I/O callback that delivered the event.
    await nextTurn();
    while (this.#waiting.length > 0) {
      const turn = this.#waiting.splice(0, EVENTS_PER_TURN);
      this.#inTurn = turn.length;
      for (const event of turn) {
        await this.#put(event);
        this.#inTurn -= 1;
      }
      this.#announceLoss();
      await nextTurn();
      if (this.#disk?.isBehind === true) await this.#disk.settled();
    }
    this.#isDraining = false;
  }

  async #put({ facts, message, body }: TrafficEvent): Promise<void> {
    this.logged += 1;
    if (body === undefined) {
      this.#log.info(facts, message);
      return;
    }
    try {
      await this.#putBody(facts, message, body);
    } catch (error) {
      this.#log.warn({ err: error, id: facts["id"] }, "A body could not be logged");
    } finally {
      body.watched.release();
    }
  }

  async #putBody(facts: TrafficEvent["facts"], message: string, { watched, input }: PendingBody): Promise<void> {
    const { pieces, sizeBytes, isCut } = watched;
    const { parts, note } = await loggedBody({ ...input, pieces, sizeBytes, isCut });
    let part = 0;
    for (const body of parts) {
      part += 1;
      this.#log.info({ ...facts, part, body }, `${message}${part === 1 ? note : "continued"}`);
      await nextTurn();
      if (this.#disk?.isBehind === true) await this.#disk.settled();
    }
    if (part === 0) this.#log.info(facts, `${message}${note}`);
  }

  #announceLoss(): void {
    const count = this.dropped - this.#announced;
    if (count === 0) return;
    this.#announced = this.dropped;
    this.#log.warn(
      { target: "traffic", events: count },
      "Traffic arrived faster than it could be logged; events are missing",
    );
  }
}
