import type { LargeBody, LargeText } from "./large-text.ts";

/** Members with a leading underscore are extensions (HAR 1.2, "Custom fields"). */
export interface Extensible {
  readonly [extension: `_${string}`]: unknown;
}

export interface HarCreator {
  readonly name: string;
  readonly version: string;
  readonly comment?: string;
}

/** Large texts are not materialized as strings, whether read from a file or to be written. */
export type HarText = string | LargeText | LargeBody;

/** A log without its entries. */
export interface HarHeader extends Extensible {
  readonly creator: HarCreator;
  readonly browser?: HarCreator;
  readonly comment?: string;
}

/** A header field or query parameter. */
export interface HarPair {
  readonly name: string;
  readonly value: string;
  readonly comment?: string;
}

/** Attributes exist for response cookies only; `expires` is an ISO 8601 time. */
export interface HarCookie extends HarPair {
  readonly path?: string;
  readonly domain?: string;
  readonly expires?: string;
  readonly httpOnly?: boolean;
  readonly secure?: boolean;
  readonly sameSite?: string;
}

export interface HarParam {
  readonly name: string;
  readonly value?: string;
  readonly fileName?: string;
  readonly contentType?: string;
  readonly comment?: string;
}

/** Decoded request body. `_encoding` is `base64` if the bytes are not UTF-8. */
export interface HarPostData extends Extensible {
  readonly mimeType: string;
  readonly text: HarText;
  readonly params?: readonly HarParam[];
  readonly comment?: string;
  readonly _encoding?: "base64";
}

/** Decoded response body. `size` counts decoded bytes, `compression` the bytes saved by the coding. */
export interface HarContent extends Extensible {
  readonly size: number;
  readonly compression?: number;
  readonly mimeType: string;
  readonly text?: HarText;
  readonly encoding?: "base64";
  readonly comment?: string;
}

/** Sizes are transferred bytes, -1 if unknown. */
export interface HarRequest extends Extensible {
  readonly method: string;
  readonly url: string;
  readonly httpVersion: string;
  readonly cookies: readonly HarCookie[];
  readonly headers: readonly HarPair[];
  readonly queryString: readonly HarPair[];
  readonly postData?: HarPostData;
  readonly headersSize: number;
  readonly bodySize: number;
  readonly comment?: string;
}

/** `status` is 0 without a response. */
export interface HarResponse extends Extensible {
  readonly status: number;
  readonly statusText: string;
  readonly httpVersion: string;
  readonly cookies: readonly HarCookie[];
  readonly headers: readonly HarPair[];
  readonly content: HarContent;
  readonly redirectURL: string;
  readonly headersSize: number;
  readonly bodySize: number;
  readonly comment?: string;
}

/** Milliseconds; -1 if a phase did not apply. `connect` includes `ssl`. */
export interface HarTimings extends Extensible {
  readonly blocked?: number;
  readonly dns?: number;
  readonly connect?: number;
  readonly send: number;
  readonly wait: number;
  readonly receive: number;
  readonly ssl?: number;
  readonly comment?: string;
}

/** Groups entries whose `pageref` is its `id`. Times are milliseconds since `startedDateTime`, -1 if unknown. */
export interface HarPage {
  readonly startedDateTime: string;
  readonly id: string;
  readonly title: string;
  readonly pageTimings: { readonly onContentLoad: number; readonly onLoad: number };
}

/** `time` is the sum of the applicable timings, without `ssl`, which `connect` includes. */
export interface HarEntry extends Extensible {
  readonly pageref?: string;
  readonly startedDateTime: string;
  readonly time: number;
  readonly request: HarRequest;
  readonly response: HarResponse;
  readonly cache: Readonly<Record<string, unknown>>;
  readonly timings: HarTimings;
  readonly serverIPAddress?: string;
  readonly connection?: string;
  readonly comment?: string;
}

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
  /** Transferred bytes; more than `bytes` if truncated. Undefined if uncounted or equal to the body's size. */
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

/** Removes the codings of Content-Encoding. Undefined if unknown, damaged, incomplete or too large. */
export type ContentDecoder = (bytes: Uint8Array, contentEncoding: string) => Uint8Array | undefined;
