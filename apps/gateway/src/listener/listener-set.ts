// Tested by ../../test/listener.test.ts
import type { Listener } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { ConnectionServices, ListenerTimeouts } from "./connection-services.ts";
import { DataListener, type ListenerState } from "./data-listener.ts";
import { http2Limits } from "./http2-limits.ts";
import type { SessionTickets } from "./session-tickets.ts";
import type { WatchFile } from "./tls-acceptor.ts";

/** What all listeners have in common. */
export interface ListenerSetParts {
  readonly services: Omit<ConnectionServices, "timeouts" | "http2">;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  readonly watch: WatchFile;
  readonly tickets: SessionTickets;
  /** Other processes of this gateway listen on the same ports. */
  readonly sharesPorts: boolean;
}

/** The listeners of the running generation. */
export class ListenerSet {
  readonly #parts: ListenerSetParts;
  readonly #services: Omit<ConnectionServices, "timeouts">;
  readonly #open = new Map<string, DataListener>();
  readonly #closing = new Set<Promise<void>>();
  #following: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: ListenerSetParts) {
    this.#parts = parts;
    this.#services = { ...parts.services, http2: http2Limits(parts.environment) };
    const { limits, http2 } = this.#services;
    parts.log.info({ code: "protocol_hardening", http1: limits, http2 }, "Limits of all clients");
  }

  /** Opens all; rejects with the first that cannot be opened, and then none is open. */
  async open(documents: readonly Listener[]): Promise<void> {
    try {
      for (const document of documents) await this.#openOne(document);
    } catch (error) {
      await this.stop(0);
      throw error;
    }
  }

  /**
   * Follows a new generation, one after the other: where an address stays, its connections stay; new addresses are
   * opened, those that are gone are drained for at most `graceMs`. What cannot be opened or adopted is logged and tried
   * again with the next generation; the others go on.
   */
  async follow(documents: readonly Listener[], graceMs: number): Promise<void> {
    this.#following = this.#following.then(async () => await this.#followNow(documents, graceMs));
    await this.#following;
  }

  /** Name, address and port of each, as they are open. */
  get addresses(): readonly { readonly name: string; readonly address: string; readonly port: number }[] {
    return [...this.#open.values()].map(({ document: { name, address }, port }) => ({ name, address, port }));
  }

  /** What each is like at this moment. */
  get states(): readonly ListenerState[] {
    return [...this.#open.values()].map(({ state }) => state);
  }

  /** Drains all for at most `graceMs`, then ends what is left. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    await this.#following;
    const stopping = [...this.#open.values()].map(async (listener) => await listener.stop(graceMs));
    this.#open.clear();
    await Promise.all([...stopping, ...this.#closing]);
  }

  async #followNow(documents: readonly Listener[], graceMs: number): Promise<void> {
    if (this.#isStopped) return;
    const wanted = new Map(documents.map((document) => [placeOf(document), document]));
    this.#nameGivenPorts(wanted);
    for (const [place, listener] of this.#open) {
      if (wanted.has(place)) continue;
      this.#open.delete(place);
      // The address is free as soon as it is not listened on; connections that go on do not hold it.
      const closing = listener.stop(graceMs).finally(() => this.#closing.delete(closing));
      this.#closing.add(closing);
    }
    for (const [place, document] of wanted) {
      try {
        const listener = this.#open.get(place);
        if (listener === undefined) await this.#openOne(document);
        else await listener.adopt(document);
      } catch (error) {
        const listener = document.name;
        this.#parts.log.error({ err: error, listener, code: "listener_failed" }, "A listener cannot be opened");
      }
    }
  }

  /** A document may name the port that the system gave: that listener stays, under the place that it has now. */
  #nameGivenPorts(wanted: ReadonlyMap<string, Listener>): void {
    for (const [place, listener] of this.#open) {
      const { document, port } = listener;
      const named = placeOf({ ...document, port });
      if (wanted.has(place) || !wanted.has(named) || this.#open.has(named)) continue;
      this.#open.delete(place);
      this.#open.set(named, listener);
    }
  }

  async #openOne(document: Listener): Promise<void> {
    const { log, watch, tickets, sharesPorts } = this.#parts;
    const timeoutsOf = (one: Listener): ListenerTimeouts => this.#timeouts(one);
    const parts = { services: this.#services, timeoutsOf, log, watch, tickets, sharesPorts };
    this.#open.set(placeOf(document), await DataListener.open(document, parts));
  }

  #timeouts(document: Listener): ListenerTimeouts {
    const { environment } = this.#parts;
    return {
      headMs: document.header_timeout_ms ?? numberOf(environment["GATEWAY_HTTP1_HEADER_TIMEOUT_MS"], 10_000),
      idleMs: document.idle_timeout_ms ?? 60_000,
      requestMs: document.request_timeout_ms ?? 0,
      bodyMs: numberOf(environment["GATEWAY_REQUEST_BODY_TIMEOUT_MS"], 30_000),
    };
  }
}

/** Where it listens; on ports of the system's choice only the name tells one from the other. */
function placeOf({ name, address, port }: Listener): string {
  return port === 0 ? `${address} ${port} ${name}` : `${address} ${port}`;
}

/** A whole number of an environment variable; anything else is the default. */
export function numberOf(text: string | undefined, otherwise: number): number {
  return text !== undefined && /^[0-9]{1,9}$/.test(text) ? Number(text) : otherwise;
}
