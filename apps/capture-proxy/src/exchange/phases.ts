import type { SliceName } from "@headworks/capture-contract";
import type { RawFields } from "@headworks/http1";
import type { Exchange, ExchangeView, ClientFacts } from "./exchange.ts";
import type { ThrottledPace } from "./bandwidth-limiter.ts";
import type { MessageControl, MessageHandler } from "./messages.ts";

/** An answer made here instead of by the origin. */
export interface SyntheticResponse {
  readonly status: number;
  readonly reason?: string;
  readonly fields: RawFields;
  readonly body: Buffer;
}

export type Verdict =
  | { readonly kind: "continue" }
  | { readonly kind: "respond"; readonly response: SyntheticResponse }
  /** The client gets a page that says why, or with `closes` a cut connection. */
  | { readonly kind: "abort"; readonly reason: string; readonly closes?: boolean };

/** A verdict that keeps a client from its origin. */
export type Refusal = Exclude<Verdict, { kind: "continue" }>;

export const CONTINUE: Verdict = { kind: "continue" };

/** Where a client wants to go, before TLS and before any request is known. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly client: ClientFacts;
  /** To be set to the line that the bytes of the tunnel are to go over. */
  pace?: ThrottledPace;
}

/** What a slice may do to an exchange. Phases run in this order; absent ones cost nothing. */
export interface Interceptor {
  readonly name: SliceName;
  /** For CONNECT targets. `respond` is the answer to CONNECT when no TLS can carry it. */
  onTarget?(target: Target): Verdict | Promise<Verdict>;
  /** The request head is known, nothing was sent upstream. May change `exchange.request`. */
  onRequestHead?(exchange: Exchange): Verdict | Promise<Verdict>;
  /** The answer's head is known, nothing was sent to the client. May change `exchange.response`. */
  onResponseHead?(exchange: Exchange): Verdict | Promise<Verdict>;
  /** The exchange became a connection of messages. The first slice that gives a handler gets them. */
  onMessages?(exchange: ExchangeView, control: MessageControl): MessageHandler | undefined;
}

/** What a slice may learn. Observers cannot delay, change or fail an exchange; they must not throw and must not await. */
export interface Observer {
  readonly name: SliceName;
  /** Request head known: the entry can be shown. */
  onStarted?(exchange: ExchangeView): void;
  /** Answer head known. */
  onResponding?(exchange: ExchangeView): void;
  /**
   * A connection takes nothing new, and what runs on it goes on to its end (GOAWAY of RFC 9113, 6.8): the client's, whoever
   * of both said so, or with a place the one to that origin.
   */
  onClosing?(client: ClientFacts, origin: { readonly host: string; readonly port: number } | undefined): void;
  /** Exactly once, after the client got its last byte or the failure is final. */
  onFinished?(exchange: ExchangeView): void;
}
