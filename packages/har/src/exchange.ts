/** A captured body; `Bytes` is its representation, by default in memory. */
export interface HarBody<Bytes = Uint8Array> {
  readonly bytes: Bytes;
  /** Whether `bytes` still have the content coding that the fields name. */
  readonly isEncoded: boolean;
  /** Whether `bytes` are a prefix, or a form without the content of some files. */
  readonly isTruncated: boolean;
  /** Parts of a form whose content is missing in the document, as display names. */
  readonly missingParts?: readonly string[];
  /** Given as text by another program: `bytes` are UTF-8, whatever charset the fields name. */
  readonly isText?: boolean;
  /**
   * Transferred bytes; more than `bytes` if truncated. Undefined if not counted, or equal to the size of a body outside
   * of memory.
   */
  readonly transferredBytes: number | undefined;
}

export interface HarExchangeRequest<Bytes = Uint8Array> {
  readonly method: string;
  readonly url: string;
  /** `HTTP/1.1`, `HTTP/2`. */
  readonly httpVersion: string;
  /** Flat list: name, value, name, value; order, case and duplicates as received. */
  readonly fields: readonly string[];
  /** Media type given by the document, without a Content-Type field. */
  readonly mediaType?: string;
  /** Undefined if there was none or it was not kept. */
  readonly body: HarBody<Bytes> | undefined;
  /** Size of a body that was not kept, if known. */
  readonly missingBodyBytes?: number;
}

export interface HarExchangeResponse<Bytes = Uint8Array> {
  readonly status: number;
  readonly reason: string;
  readonly httpVersion: string;
  readonly fields: readonly string[];
  /** Media type given by the document, without a Content-Type field. */
  readonly mediaType?: string;
  readonly body: HarBody<Bytes> | undefined;
  /** Size of a body that was not kept, if known. */
  readonly missingBodyBytes?: number;
}

/** Phase durations in milliseconds; undefined if a phase did not occur or was not measured. */
export interface HarExchangeTimings {
  readonly blocked: number | undefined;
  readonly dns: number | undefined;
  /** TCP only, without TLS. */
  readonly connect: number | undefined;
  readonly tls: number | undefined;
  readonly send: number | undefined;
  readonly wait: number | undefined;
  readonly receive: number | undefined;
}

/** A WebSocket message or control frame. */
export interface HarWebSocketMessage {
  readonly from: "client" | "server";
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** RFC 6455 section 5.2: 1 text, 2 binary; control frames from 8. */
  readonly opcode: number;
  readonly data: Uint8Array;
}

/** An exchange, independent of how programs store it. */
export interface HarExchange<Bytes = Uint8Array> {
  /** Whole milliseconds since 1970. */
  readonly startedMs: number;
  readonly request: HarExchangeRequest<Bytes>;
  /** Undefined if none was received. */
  readonly response: HarExchangeResponse<Bytes> | undefined;
  readonly timings: HarExchangeTimings;
  /** `ip`, `ip:port` or `[ipv6]:port`. */
  readonly serverAddress: string | undefined;
  readonly clientAddress: string | undefined;
  readonly connectionId: string | undefined;
  readonly note: string | undefined;
  readonly webSocketMessages: readonly HarWebSocketMessage[] | undefined;
  /** Number of unreadable WebSocket messages that were left out. */
  readonly unreadMessages?: number;
  readonly weir: HarOwnFacts;
}

/** Facts of Weir's exports that HAR cannot express. */
export interface HarOwnFacts {
  readonly id: string | undefined;
  readonly session: string | undefined;
  readonly isPassthrough: boolean;
  readonly failure: string | undefined;
  /** Additional JSON data of the program. */
  readonly more: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Removes the codings of a Content-Encoding value. Undefined for unknown codings, damaged or incomplete data, and
 * results that are too large.
 */
export type ContentDecoder = (bytes: Uint8Array, contentEncoding: string) => Uint8Array | undefined;
