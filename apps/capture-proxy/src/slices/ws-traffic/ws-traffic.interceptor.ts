import type { ExchangeView } from "#exchange/exchange.ts";
import type { MessageControl, MessageHandler } from "#exchange/messages.ts";
import type { Interceptor } from "#exchange/phases.ts";
import type { StreamStore } from "#storage/streams/stream-store.ts";
import { ConnectionMessages } from "./connection-messages.ts";
import type { MessagesParts } from "./connection-messages.ts";

/** Takes the messages of WebSocket connections, and knows the connections that are open. */
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
    // Nobody sees a connection that is not recorded; only rules may concern it.
    if (!exchange.isRecorded && this.#parts.rules().length === 0) return undefined;
    const recorder = this.#streams.open(exchange, "websocket");
    if (exchange.isRecorded) this.#open.set(exchange.id, control);
    return new ConnectionMessages(exchange, recorder, this.#parts, () => this.#open.delete(exchange.id));
  }

  /** What can be done with an open connection. */
  control(id: string): MessageControl | undefined {
    return this.#open.get(id);
  }
}
