import type { SliceName } from "@headworks/capture-contract";
import type { RawFields } from "@headworks/http1";
import type { ClientFacts, Exchange, ExchangeFacts, ExchangeView } from "./exchange.ts";
import type { ThrottledPace } from "./bandwidth-limiter.ts";
import type { MessageControl, MessageFilter, MessageHandler } from "./messages.ts";

/** A response made by Weir instead of the origin. */
export interface SyntheticResponse {
  readonly status: number;
  readonly reason?: string;
  readonly fields: RawFields;
  readonly body: Buffer;
}

export type Verdict =
  | { readonly kind: "continue" }
  | { readonly kind: "respond"; readonly response: SyntheticResponse }
  /** The client gets an error page with the reason, or with `closes` a closed connection. */
  | { readonly kind: "abort"; readonly reason: string; readonly closes?: boolean };

/** A verdict that blocks the request. */
export type Refusal = Exclude<Verdict, { kind: "continue" }>;

export const CONTINUE: Verdict = { kind: "continue" };

/** A client's target, before TLS and before any request is known. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly client: ClientFacts;
  /** Set it to limit the tunnel's bandwidth. */
  pace?: ThrottledPace;
}

/** Hooks that may change an exchange, called in this order. Absent hooks cost nothing. */
export interface Interceptor {
  readonly name: SliceName;
  /** A CONNECT target. A `respond` verdict is the response to CONNECT if TLS cannot carry it. */
  onTarget?(target: Target): Verdict | Promise<Verdict>;
  /** The request head was read, nothing was sent upstream. May change `exchange.request`. */
  onRequestHead?(exchange: Exchange): Verdict | Promise<Verdict>;
  /** The response head was read, nothing was sent to the client. May change `exchange.response`. */
  onResponseHead?(exchange: Exchange): Verdict | Promise<Verdict>;
  /** The exchange became a connection of messages. The first slice that returns a handler receives them. */
  onMessages?(exchange: ExchangeView, control: MessageControl): MessageHandler | undefined;
  /** The exchange became a connection of messages. Filters decide before the handler, in the order of the slices. */
  filterMessages?(exchange: ExchangeView): MessageFilter | undefined;
}

/** What is stored of a finished exchange. */
export type StoreDecision = { readonly kind: "skip" } | { readonly kind: "store"; readonly exchange: ExchangeFacts };

/** Decides what is stored of an exchange, when it has ended. */
export interface StoreFilter {
  /** True: the exchange is not shown before its end. */
  concerns(exchange: ExchangeView): boolean;
  /** Undefined: the exchange is stored as it is. The promise must not be rejected. */
  decide(exchange: ExchangeView): Promise<StoreDecision> | undefined;
}

/** Hooks that observe exchanges. They cannot delay, change or fail one; they must not throw or await. */
export interface Observer {
  readonly name: SliceName;
  /** The request head was read. */
  onStarted?(exchange: ExchangeView): void;
  /** The response head was read. */
  onResponding?(exchange: ExchangeView): void;
  /**
   * A connection accepts nothing new and completes what is in flight (GOAWAY, RFC 9113, 6.8): the client's connection
   * or, if `origin` is given, the one to that origin.
   */
  onClosing?(client: ClientFacts, origin: { readonly host: string; readonly port: number } | undefined): void;
  /** Called once, after the client received the last byte or the failure is final. */
  onFinished?(exchange: ExchangeView): void;
}
