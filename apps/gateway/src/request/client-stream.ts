import type { SharedBytes } from "@headworks/sockets";
import type { X509Certificate } from "node:crypto";
import type { Framing, RawFields } from "@headworks/http1";
import type { TunnelEnd } from "./join-sockets.ts";
import type { Refusal } from "./phases.ts";

export interface ListenerFacts {
  readonly name: string;
  readonly isSecure: boolean;
  readonly port: number;
}

/** The client's end of a connection; behind the PROXY protocol, the end it names. */
export interface Peer {
  readonly address: string;
  readonly port: number;
  /** The client's verified certificate, if one was requested and sent. */
  readonly certificate?: X509Certificate;
  readonly serverName?: string;
}

/** Events on the client's side of a request. Never called from inside a call to {@link ClientStream}. */
export interface ClientHandler {
  readonly onBodyData: (piece: SharedBytes) => void;
  onBodyTrailers(fields: RawFields): void;
  onBodyEnd(): void;
  /** One read is processed: flush the resulting output. */
  onBodyBatch(): void;
  /** The client accepts more of the response. */
  onClientDrain(): void;
  /** The client disconnected, or its body was malformed after the response had started. */
  onClientGone(): void;
  /** The request timed out or its body is malformed, and no response was started: send this refusal, or abort. */
  onRefused(refusal: Refusal): void;
}

/** One request of a client, independent of the protocol: its body in, its response out. */
export interface ClientStream {
  readonly version: "1.0" | "1.1" | "2";
  /** Undefined until a handler takes the request. */
  handler: ClientHandler | undefined;
  /**
   * Starts to deliver the body to `handler`, and sends 100 Continue if the client expects it. If the body is never
   * read, the stream closes after its response, or discards the body.
   */
  readBody(): void;
  /** Bytes of the body that have arrived and are unread. */
  readonly bodyBytesHere: number;
  pauseBody(): void;
  resumeBody(): void;
  sendInformational(status: number, reason: string, fields: RawFields): void;
  /** Starts the response; `fields` must not contain hop-by-hop and framing fields, which the stream adds. */
  sendHead(status: number, reason: string, fields: RawFields, framing: Framing): void;
  readonly sendData: (piece: SharedBytes) => void;
  /** Ends the response. After a body of known length only HTTP/2 can carry trailers. */
  sendEnd(trailers?: RawFields): void;
  /**
   * Writes buffered output. False: stop producing until `onClientDrain`. Up to `bufferBytes` may be buffered for a
   * slow client before that, as memory permits.
   */
  flush(bufferBytes: number): boolean;
  /** Ends the response early, in a way that the client sees as incomplete. */
  abort(): void;
  /**
   * After a 101 was sent with {@link sendHead}: the tunnel (the connection, or one HTTP/2 stream) and the bytes read
   * beyond the request. Undefined where there is none.
   */
  takeOver(): TunnelEnd | undefined;
  readonly canUpgrade: boolean;
}
