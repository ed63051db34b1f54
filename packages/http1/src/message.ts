/** Flat list `[name0, value0, name1, value1, …]` in latin1 with the case, order and repeats of the wire. */
export type RawFields = string[];

/**
 * The original field lines with their line ends, if serializing the fields would give the same text: one space after
 * each colon, no white space after values. Otherwise, and over HTTP/2, undefined. Changing fields invalidates them.
 */
export type FieldLines = string | undefined;

/** How the end of a message body is determined (RFC 9112 section 6). */
export type Framing =
  | { readonly kind: "none" }
  | { readonly kind: "length"; readonly lengthBytes: number }
  | { readonly kind: "chunked" }
  | { readonly kind: "until-close" };

export const NO_BODY: Framing = Object.freeze({ kind: "none" });
export const CHUNKED: Framing = Object.freeze({ kind: "chunked" });
export const UNTIL_CLOSE: Framing = Object.freeze({ kind: "until-close" });

const ZERO_LENGTH: Framing = Object.freeze({ kind: "length", lengthBytes: 0 });

export function lengthFraming(lengthBytes: number): Framing {
  return lengthBytes === 0 ? ZERO_LENGTH : { kind: "length", lengthBytes };
}

/** Whether a body may follow the head. */
export function hasBody(framing: Framing): boolean {
  return framing.kind === "length" ? framing.lengthBytes > 0 : framing.kind !== "none";
}

export type Version = "1.0" | "1.1";

/** Request-target forms of RFC 9112 section 3.2. */
export type TargetForm = "origin" | "absolute" | "authority" | "asterisk";

/** A request head that passed all strict checks. */
export interface RequestHead {
  readonly method: string;
  /** The request-target as sent. */
  readonly target: string;
  readonly targetForm: TargetForm;
  /**
   * The authority (`host[:port]`) of this request: from an absolute-form or CONNECT target, otherwise from Host. Route
   * on it and forward it; `undefined` only in HTTP/1.0 without Host.
   */
  readonly authority: string | undefined;
  readonly version: Version;
  readonly fields: RawFields;
  readonly fieldLines: FieldLines;
  readonly framing: Framing;
  /** False after `Connection: close`, and in HTTP/1.0 without `keep-alive`. */
  readonly keepAlive: boolean;
  /** `Expect: 100-continue` in HTTP/1.1. */
  readonly expectContinue: boolean;
  /**
   * Lower-cased Upgrade value, if Connection names `upgrade`, the version is 1.1, there is no body and `h2c` is not
   * among the protocols; otherwise `undefined`, and the offer must be ignored.
   */
  readonly upgrade: string | undefined;
  /** The Host value as sent; `authority` takes precedence. */
  readonly host: string | undefined;
  readonly headSizeBytes: number;
}

/** Deviations tolerated by the lenient response reader. Any of them forbids reusing the connection. */
export type Oddity =
  | "bare-lf"
  | "chunk-size-padding"
  | "content-length-with-transfer-encoding"
  | "control-character"
  | "dropped-line"
  | "dropped-trailer"
  | "identity-transfer-encoding"
  | "leading-empty-line"
  | "line-folding"
  | "missing-last-line"
  | "missing-reason-space"
  | "odd-chunk-extension"
  | "odd-version"
  | "repeated-content-length"
  | "repeated-transfer-encoding"
  | "space-before-colon"
  | "status-line-spacing";

/** A final or informational response head. */
export interface ResponseHead {
  readonly version: Version;
  readonly status: number;
  readonly reason: string;
  readonly fields: RawFields;
  readonly fieldLines: FieldLines;
  readonly framing: Framing;
  /** Whether this head allows another exchange on the connection; false with any oddity. */
  readonly keepAlive: boolean;
  /** Lower-cased Upgrade value of a 101. */
  readonly upgrade: string | undefined;
  /** Oddities of the head; the body may add more, see `ResponseReader.oddities`. */
  readonly oddities: readonly Oddity[];
  readonly headSizeBytes: number;
}

/** Limits on what one message may consume. */
export interface Limits {
  /** The start line and all fields, with line ends. */
  readonly headBytes: number;
  readonly fieldCount: number;
  /** The trailer section with line ends. */
  readonly trailerBytes: number;
  /** One chunk-size line with its extensions. */
  readonly chunkLineBytes: number;
  /** All chunk extensions of one message, so that tiny chunks cannot carry unlimited extensions. */
  readonly chunkExtensionBytes: number;
  /** Informational responses before a final one. */
  readonly informationalCount: number;
}

export const REQUEST_LIMITS: Limits = Object.freeze({
  headBytes: 65_536,
  fieldCount: 100,
  trailerBytes: 16_384,
  chunkLineBytes: 4_096,
  chunkExtensionBytes: 16_384,
  informationalCount: 32,
});

/**
 * Origins send larger heads than clients (security policies, cookies). Browsers, curl and Node accept about this size
 * and thousands of fields.
 */
export const RESPONSE_LIMITS: Limits = Object.freeze({ ...REQUEST_LIMITS, headBytes: 262_144, fieldCount: 2000 });
