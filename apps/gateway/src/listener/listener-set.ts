// Tested by ../../test/pipeline.test.ts
import type { Listener } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { ConnectionServices, ListenerTimeouts } from "./connection-services.ts";
import { DataListener } from "./data-listener.ts";

/** What all listeners have in common. */
export interface ListenerSetParts {
  readonly services: Omit<ConnectionServices, "closed" | "timeouts">;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
}

interface OpenListener {
  readonly listener: DataListener;
  readonly document: Listener;
}

/** The listeners of the running generation. */
export class ListenerSet {
  readonly #parts: ListenerSetParts;
  readonly #open = new Map<string, OpenListener>();

  constructor(parts: ListenerSetParts) {
    this.#parts = parts;
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
   * Follows a new generation: listeners that are new are opened, those that are gone or changed are drained. One that
   * cannot be opened is logged and tried again with the next generation; the others go on.
   */
  async follow(documents: readonly Listener[], graceMs: number): Promise<void> {
    const wanted = new Map(documents.map((document) => [document.name, document]));
    const closing: Promise<void>[] = [];
    for (const [name, { listener, document }] of this.#open) {
      const next = wanted.get(name);
      if (next !== undefined && JSON.stringify(next) === JSON.stringify(document)) continue;
      this.#open.delete(name);
      const isSamePlace = next !== undefined && next.address === document.address && next.port === document.port;
      const stopped = listener.stop(graceMs);
      // The address is free as soon as it is not listened on; connections that go on do not hold it.
      if (!isSamePlace) closing.push(stopped);
    }
    for (const document of documents) {
      if (this.#open.has(document.name)) continue;
      try {
        await this.#openOne(document);
      } catch (error) {
        this.#parts.log.error(
          { err: error, listener: document.name, code: "listener_failed" },
          "A listener cannot be opened",
        );
      }
    }
    await Promise.all(closing);
  }

  /** Name, address and port of each, as they are open. */
  get addresses(): readonly { readonly name: string; readonly address: string; readonly port: number }[] {
    return [...this.#open.values()].map(({ listener, document }) => ({
      name: document.name,
      address: document.address,
      port: listener.port,
    }));
  }

  async stop(graceMs: number): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ listener }) => listener.stop(graceMs)));
    this.#open.clear();
  }

  async #openOne(document: Listener): Promise<void> {
    const services = { ...this.#parts.services, timeouts: this.#timeouts(document) };
    this.#open.set(document.name, { listener: await DataListener.open(document, services), document });
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

/** A whole number of an environment variable; anything else is the default. */
export function numberOf(text: string | undefined, otherwise: number): number {
  return text !== undefined && /^[0-9]{1,9}$/.test(text) ? Number(text) : otherwise;
}
