import type { X509Certificate } from "node:crypto";
import type { Framing, RawFields } from "@headworks/http1";
import type { TunnelEnd } from "./join-sockets.ts";
import type { Refusal } from "./phases.ts";

/** What is known of the listener that accepted a connection. */
export interface ListenerFacts {
  readonly name: string;
  readonly isSecure: boolean;
  readonly port: number;
}

/** The other end of a client's connection; behind the PROXY protocol, who it says. */
export interface Peer {
  readonly address: string;
  readonly port: number;
  /** The client's certificate, if it was asked for, sent, and verified. */
  readonly certificate?: X509Certificate;
  readonly serverName?: string;
}

/** What happens on the client's side of a request. Calls never come from inside a call to {@link ClientStream}. */
export interface ClientHandler {
  onBodyData(piece: Buffer): void;
  onBodyTrailers(fields: RawFields): void;
  onBodyEnd(): void;
  /** One read is worked off: flush what it caused. */
  onBodyBatch(): void;
  /** The client takes more of the answer. */
  onClientDrain(): void;
  /** The client went away, or broke the grammar of its body behind the beginning of an answer. */
  onClientGone(): void;
  /**
   * The time of the request is over, or its body breaks the grammar, and nothing of an answer was sent: it is answered
   * with this, or cut.
   */
  onRefused(refusal: Refusal): void;
}

/** One request of a client, whatever the protocol: its body in, its answer out. */
export interface ClientStream {
  readonly version: "1.0" | "1.1" | "2";
  /** Undefined until somebody handles the request. */
  handler: ClientHandler | undefined;
  /**
   * Begins to deliver the body to `handler` (and says 100 Continue to a client that waits for it). A stream whose
   * body is never asked for answers and closes, or drops what comes.
   */
  readBody(): void;
  /** Bytes of the body that are here already, unread. */
  readonly bodyBytesHere: number;
  pauseBody(): void;
  resumeBody(): void;
  sendInformational(status: number, reason: string, fields: RawFields): void;
  /** Starts the answer; hop-by-hop and framing fields are this stream's business and must not be in `fields`. */
  sendHead(status: number, reason: string, fields: RawFields, framing: Framing): void;
  sendData(piece: Buffer): void;
  /** Ends the answer. Behind a body of known length only HTTP/2 has a place for trailers. */
  sendEnd(trailers?: RawFields): void;
  /**
   * Hands over what waits. False: stop producing until `onClientDrain`. A client that is slow may have `bufferBytes` waiting
   * for it before, as long as there is memory for that.
   */
  flush(bufferBytes: number): boolean;
  /** Ends the answer in the middle, so that the client sees that it is not whole. */
  abort(): void;
  /**
   * After a 101 was written with {@link sendHead}: gives what is a tunnel from then on (the connection, or one stream of
   * HTTP/2), and bytes read behind the request. Undefined where there is none.
   */
  takeOver(): TunnelEnd | undefined;
  readonly canUpgrade: boolean;
}
