import type { ExchangeView } from "#exchange/exchange.ts";
import type { MessageControl, MessageHandler } from "#exchange/messages.ts";
import type { Interceptor } from "#exchange/phases.ts";
import type { StreamStore } from "#storage/streams/stream-store.ts";
import { ConnectionMessages } from "./connection-messages.ts";
import type { MessagesParts } from "./connection-messages.ts";

/** Taps WebSocket connections and tracks the open ones. */
export class WsTrafficInterceptor implements Interceptor {
  readonly name = "ws-traffic";
  readonly #streams: StreamStore;
  readonly #parts: MessagesParts;
  readonly #open = new Map<string, MessageControl>();

  constructor(streams: StreamStore, parts: MessagesParts) {
    this.#streams = streams;
    this.#parts = parts;
  }

  onMessages(exchange: ExchangeView, control: MessageControl): MessageHandler | undefined {
    // Unrecorded connections are invisible in the API; only rules may apply to them.
    if (!exchange.isRecorded && this.#parts.rules().length === 0) return undefined;
    const recorder = this.#streams.open(exchange, "websocket");
    if (exchange.isRecorded) this.#open.set(exchange.id, control);
    return new ConnectionMessages(exchange, recorder, this.#parts, () => this.#open.delete(exchange.id));
  }

  control(id: string): MessageControl | undefined {
    return this.#open.get(id);
  }
}
