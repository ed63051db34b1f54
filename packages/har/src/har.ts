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
