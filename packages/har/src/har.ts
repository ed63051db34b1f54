import type { LargeBody } from "./large-body.ts";
import type { LargeText } from "./large-text.ts";

/** Members whose names begin with an underscore are extensions (HAR 1.2, "Custom fields"). */
export interface Extensible {
  readonly [extension: `_${string}`]: unknown;
}

/** A program and its version. */
export interface HarCreator {
  readonly name: string;
  readonly version: string;
  readonly comment?: string;
}

/** A text of an entry; large ones are not made strings, whether they were read from a file or are to be written. */
export type HarText = string | LargeText | LargeBody;

/** Everything of a log except its entries. */
export interface HarHeader extends Extensible {
  readonly creator: HarCreator;
  readonly browser?: HarCreator;
  readonly comment?: string;
}

/** A named value: a header field, a query parameter. */
export interface HarPair {
  readonly name: string;
  readonly value: string;
  readonly comment?: string;
}

/** A cookie. Attributes are known for response cookies only; `expires` is an ISO 8601 time. */
export interface HarCookie extends HarPair {
  readonly path?: string;
  readonly domain?: string;
  readonly expires?: string;
  readonly httpOnly?: boolean;
  readonly secure?: boolean;
  readonly sameSite?: string;
}

/** A field of a posted form. */
export interface HarParam {
  readonly name: string;
  readonly value?: string;
  readonly fileName?: string;
  readonly contentType?: string;
  readonly comment?: string;
}

/** The request body, content coding removed. `_encoding` is `base64` when the bytes are not UTF-8 text. */
export interface HarPostData extends Extensible {
  readonly mimeType: string;
  readonly text: HarText;
  readonly params?: readonly HarParam[];
  readonly comment?: string;
  readonly _encoding?: "base64";
}

/** The response body, content coding removed. `size` counts decoded bytes, `compression` what the coding saved. */
export interface HarContent extends Extensible {
  readonly size: number;
  readonly compression?: number;
  readonly mimeType: string;
  readonly text?: HarText;
  readonly encoding?: "base64";
  readonly comment?: string;
}

/** Sizes are in bytes as transferred, -1 when unknown. */
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

/** `status` is 0 when there was no response. */
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

/** Milliseconds; -1 where a phase did not apply. `connect` includes `ssl`. */
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

/**
 * What entries belong together; their `pageref` is its `id`. Times are milliseconds since `startedDateTime`, -1 where they are
 * unknown.
 */
export interface HarPage {
  readonly startedDateTime: string;
  readonly id: string;
  readonly title: string;
  readonly pageTimings: { readonly onContentLoad: number; readonly onLoad: number };
}

/** One exchange. `time` is the sum of the timings that apply, `ssl` not counted twice. */
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
