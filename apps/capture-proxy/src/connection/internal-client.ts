// Tested by ../../test/internal-client.test.ts
import type { ClientFacts, ExchangeView } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { SendExchange } from "#exchange/outgoing.ts";
import type { Observer } from "#exchange/phases.ts";
import { HttpConnection } from "./http-connection.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { Sending, writtenHead } from "./sending.ts";
import { socketPair } from "./socket-pair.ts";

const STOPPED: Failure = {
  stage: "policy",
  side: "internal",
  code: "SHUTDOWN",
  message: "The proxy was stopped before the exchange was complete",
};

/**
 * The client that Weir itself is: its requests reach the data path through a connection in memory, so that rules,
 * capture and the settings of upstream connections apply to them as to anybody's. As an observer it learns which
 * exchange became of which request.
 */
export class InternalClient implements Observer {
  readonly name = "replay";
  readonly #services: () => ProxyServices;
  readonly #sendings = new Map<ClientFacts, Sending>();
  #lastNumber = 0;
  #isClosed = false;

  /** `services` are asked for when something is sent: they are made of this client too. */
  constructor(services: () => ProxyServices) {
    this.#services = services;
  }

  readonly send: SendExchange = (request, options = {}) => {
    const head = writtenHead(request);
    if (this.#isClosed) return Promise.resolve({ kind: "failed", failure: STOPPED, exchange: undefined });
    this.#lastNumber += 1;
    // Not from the network: no port, and a number that no connection of a client has.
    const facts = {
      address: `replay:${this.#lastNumber}`,
      connection: -this.#lastNumber,
      sni: undefined,
      tls: undefined,
    };
    const { scheme, host, port } = request;
    return new Promise((resolve) => {
      const [near, far] = socketPair();
      const base = { scheme, host, port, serverName: undefined };
      const connection = new HttpConnection(this.#services(), far, facts, base, undefined);
      const sending = new Sending(near, request, options, (outcome) => {
        this.#sendings.delete(facts);
        resolve(outcome);
      });
      this.#sendings.set(facts, sending);
      connection.begin(undefined);
      sending.write(head);
    });
  };

  onStarted(exchange: ExchangeView): void {
    this.#sendings.get(exchange.client)?.started();
  }

  onFinished(exchange: ExchangeView): void {
    this.#sendings.get(exchange.client)?.finished(exchange);
  }

  /** Ends what is under way and sends nothing more. */
  close(): void {
    this.#isClosed = true;
    for (const sending of this.#sendings.values()) sending.abort(STOPPED);
  }
}
