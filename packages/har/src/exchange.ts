/** A body as a capture holds it; `Bytes` says how: in memory, unless told otherwise. */
export interface HarBody<Bytes = Uint8Array> {
  readonly bytes: Bytes;
  /** Whether `bytes` still carry the content coding that the header fields name. */
  readonly isEncoded: boolean;
  /** Whether `bytes` are only the beginning, or a form without the content of some of its files. */
  readonly isTruncated: boolean;
  /** Of a form: the parts whose content the document does not have, each as people are told of it. */
  readonly missingParts?: readonly string[];
  /** Another program gave it as text: `bytes` are that in UTF-8, whichever charset the header fields name. */
  readonly isText?: boolean;
  /**
   * Bytes that were transferred; more than `bytes` has when truncated. Undefined when that was not counted, or is what
   * a body that is not in memory has.
   */
  readonly transferredBytes: number | undefined;
}

/** Request head and body. */
export interface HarExchangeRequest<Bytes = Uint8Array> {
  readonly method: string;
  readonly url: string;
  /** `HTTP/1.1`, `HTTP/2`. */
  readonly httpVersion: string;
  /** Header fields as a flat list: name, value, name, value; order, case and duplicates as received. */
  readonly fields: readonly string[];
  /** What the body is, as a document says of it where no field does. */
  readonly mediaType?: string;
  /** Undefined when there was none or it was not kept. */
  readonly body: HarBody<Bytes> | undefined;
  /** Of a body that was not kept, when it is known: the bytes that there were. */
  readonly missingBodyBytes?: number;
}

/** Response head and body. */
export interface HarExchangeResponse<Bytes = Uint8Array> {
  readonly status: number;
  readonly reason: string;
  readonly httpVersion: string;
  readonly fields: readonly string[];
  /** What the body is, as a document says of it where no field does. */
  readonly mediaType?: string;
  readonly body: HarBody<Bytes> | undefined;
  /** Of a body that was not kept, when it is known: the bytes that there were. */
  readonly missingBodyBytes?: number;
}

/** Durations of the phases in milliseconds; undefined where a phase did not happen or was not measured. */
export interface HarExchangeTimings {
  readonly blocked: number | undefined;
  readonly dns: number | undefined;
  /** TCP alone, without TLS. */
  readonly connect: number | undefined;
  readonly tls: number | undefined;
  readonly send: number | undefined;
  readonly wait: number | undefined;
  readonly receive: number | undefined;
}

/** A message or a control frame on a WebSocket connection. */
export interface HarWebSocketMessage {
  readonly from: "client" | "server";
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** Opcode of RFC 6455 section 5.2: 1 text, 2 binary; control frames from 8 on. */
  readonly opcode: number;
  readonly data: Uint8Array;
}

/** An exchange as this package takes and gives it, free of how any program stores it. */
export interface HarExchange<Bytes = Uint8Array> {
  /** Start, whole milliseconds since 1970. */
  readonly startedMs: number;
  readonly request: HarExchangeRequest<Bytes>;
  /** Undefined when none was received. */
  readonly response: HarExchangeResponse<Bytes> | undefined;
  readonly timings: HarExchangeTimings;
  /** `ip`, `ip:port` or `[ipv6]:port` of the server. */
  readonly serverAddress: string | undefined;
  readonly clientAddress: string | undefined;
  readonly connectionId: string | undefined;
  readonly note: string | undefined;
  readonly webSocketMessages: readonly HarWebSocketMessage[] | undefined;
  /** So many messages of a WebSocket could not be read, and are left out. */
  readonly unreadMessages?: number;
  /** What only our own programs understand. */
  readonly weir: HarOwnFacts;
}

/** Facts that HAR has no room for. */
export interface HarOwnFacts {
  readonly id: string | undefined;
  readonly session: string | undefined;
  readonly isPassthrough: boolean;
  /** Why the exchange failed. */
  readonly failure: string | undefined;
  /** Further plain JSON data of the program. */
  readonly more: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Removes the codings that a Content-Encoding value names. Undefined when it cannot: unknown coding, damaged or
 * incomplete data, or a result that would be too large.
 */
export type ContentDecoder = (bytes: Uint8Array, contentEncoding: string) => Uint8Array | undefined;
