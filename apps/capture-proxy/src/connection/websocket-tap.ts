import { closePayload, MessageInflater, readDeflate } from "@headworks/websocket";
import { fieldValues } from "@headworks/http1";
import type { Exchange } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { MessageControl, MessageDirection, MessageHandler } from "#exchange/messages.ts";
import type { MessageTap, OpenTap, TapOutlet } from "./message-tap.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { WebSocketDirection } from "./websocket-direction.ts";
import type { DirectionTerms } from "./websocket-direction.ts";

/** Decompression limit per message; it runs synchronously. */
const MAX_INFLATED_BYTES = 16_777_216;
/** How long peers have to reply to our close frame. */
const GOODBYE_MS = 2000;

/**
 * The tap of an exchange that became a WebSocket connection; undefined if it did not, or if no slice handles its
 * messages.
 */
export function websocketTap(services: ProxyServices, exchange: Exchange): OpenTap | undefined {
  const { request, response } = exchange;
  if (response === undefined || (request.scheme !== "ws" && request.scheme !== "wss")) return undefined;
  return (up, down, end) => {
    const tap = new WebSocketTap(services, exchange, end);
    return tap.open(up, down) ? tap : undefined;
  };
}

class WebSocketTap implements MessageTap, MessageControl {
  readonly #services: ProxyServices;
  readonly #exchange: Exchange;
  readonly #end: () => void;
  #handler: MessageHandler | undefined;
  #directions: { readonly up: WebSocketDirection; readonly down: WebSocketDirection } | undefined;
  #isFinished = false;
  #isClosing = false;
  #goodbye: NodeJS.Timeout | undefined;

  constructor(services: ProxyServices, exchange: Exchange, end: () => void) {
    this.#services = services;
    this.#exchange = exchange;
    this.#end = end;
  }

  /** False: no slice takes part. */
  open(up: TapOutlet, down: TapOutlet): boolean {
    const handler = this.#services.pipeline.messages(this.#exchange, this);
    if (handler === undefined) return false;
    this.#handler = handler;
    const [sent, received, unknown] = this.#terms();
    const onClose = (): void => this.#sideClosed();
    this.#directions = {
      up: new WebSocketDirection("send", sent, handler, up, onClose),
      down: new WebSocketDirection("receive", received, handler, down, onClose),
    };
    if (unknown.length > 0) {
      for (const direction of ["send", "receive"] as const) {
        handler.broken(direction, `The extension ${unknown.join(", ")} is not known: compressed messages are not read`);
      }
    }
    return true;
  }

  get up(): WebSocketDirection {
    return this.#both.up;
  }

  get down(): WebSocketDirection {
    return this.#both.down;
  }

  get isDeciding(): boolean {
    return this.up.isDeciding || this.down.isDeciding;
  }

  inject(direction: MessageDirection, opcode: number, payload: Buffer): boolean {
    if (this.#isFinished || this.#isClosing) return false;
    return (direction === "send" ? this.up : this.down).inject(opcode, payload);
  }

  close(code: number, reason: string): boolean {
    if (this.#isFinished || this.#isClosing) return false;
    this.#isClosing = true;
    const payload = closePayload(code, reason);
    this.up.close(payload);
    this.down.close(payload);
    this.#goodbye = setTimeout(() => this.#end(), GOODBYE_MS);
    this.#sideClosed();
    return true;
  }

  closed(failure: Failure | undefined): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    clearTimeout(this.#goodbye);
    this.#handler?.closed(failure);
  }

  get #both(): { readonly up: WebSocketDirection; readonly down: WebSocketDirection } {
    if (this.#directions === undefined) throw new TypeError("The tap is not open");
    return this.#directions;
  }

  #sideClosed(): void {
    if (this.#isClosing && this.up.hasClosed && this.down.hasClosed) setImmediate(this.#end);
  }

  /** Terms for both directions, and the unknown extensions. */
  #terms(): readonly [DirectionTerms, DirectionTerms, readonly string[]] {
    const keptBytes = this.#services.policy().maxBodyBytes;
    const { fields = [] } = this.#exchange.response ?? {};
    const { deflate, unknown } = readDeflate(fieldValues(fields, "sec-websocket-extensions"));
    const terms = (takesOver: boolean): DirectionTerms => ({
      inflater: deflate && new MessageInflater(takesOver, Math.min(keptBytes, MAX_INFLATED_BYTES)),
      takesOver: deflate !== undefined && takesOver,
      mayChange: unknown.length === 0,
      // An unknown extension may use any reserved bit: frames are read, compressed payloads are not.
      allowedReserved: unknown.length > 0 ? 7 : deflate === undefined ? 0 : 4,
      keptBytes,
    });
    return [
      terms(deflate?.clientNoContextTakeover !== true),
      terms(deflate?.serverNoContextTakeover !== true),
      unknown,
    ];
  }
}
