import { randomUUID } from "node:crypto";
import type { WsPaused } from "@headworks/capture-contract";
import { opcodeName } from "@headworks/websocket";
import type { MessageVerdict, TappedMessage } from "#exchange/messages.ts";
import { shownPayload } from "./shown-message.ts";

/** Beyond this number the oldest message continues. */
const MAX_PAUSED = 100;

interface Waiting {
  readonly shown: WsPaused;
  readonly opcode: number;
  readonly settle: (verdict: MessageVerdict) => void;
}

/** Messages paused for a manual decision, oldest first. */
export class PausedMessages {
  readonly #waiting = new Map<string, Waiting>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#waiting.size;
  }

  list(): WsPaused[] {
    return Array.from(this.#waiting.values(), ({ shown }) => shown);
  }

  opcodeOf(id: string): number | undefined {
    return this.#waiting.get(id)?.opcode;
  }

  async add(
    connection: { readonly id: string; readonly url: string },
    rule: { readonly id: string; readonly name: string },
    message: TappedMessage,
    nowMs: number,
  ): Promise<MessageVerdict> {
    const [oldest] = this.#waiting.keys();
    if (oldest !== undefined && this.#waiting.size >= MAX_PAUSED) this.resume(oldest, { kind: "pass" });
    const id = randomUUID();
    const { promise, resolve } = Promise.withResolvers<MessageVerdict>();
    const name = opcodeName(message.opcode) ?? "binary";
    const shown: WsPaused = {
      id,
      connection_id: connection.id,
      url: connection.url,
      rule_id: rule.id,
      rule_name: rule.name,
      direction: message.direction,
      message_type: name === "continuation" ? "binary" : name,
      payload: shownPayload(message.payload, message.payload.length, name),
      paused_at: new Date(nowMs).toISOString(),
    };
    this.#waiting.set(id, { shown, opcode: message.opcode, settle: resolve });
    this.#onChange();
    return await promise;
  }

  /** False when the message is no longer paused. */
  resume(id: string, verdict: MessageVerdict): boolean {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return false;
    this.#waiting.delete(id);
    waiting.settle(verdict);
    this.#onChange();
    return true;
  }

  /** Drops the paused messages of a closed connection. */
  forget(connectionId: string): void {
    for (const [id, { shown }] of this.#waiting) {
      if (shown.connection_id === connectionId) this.resume(id, { kind: "drop" });
    }
  }
}
