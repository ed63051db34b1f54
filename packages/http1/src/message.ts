/** Flat list `[name0, value0, name1, value1, …]` in latin1; case, order and repeats are those of the wire. */
export type RawFields = string[];

/**
 * The lines that fields were read from, each with its line end, if they are what would be written of the fields: one space
 * behind each colon, none behind the values. Otherwise, and over HTTP/2, undefined. Who changes fields forgets their lines.
 */
export type FieldLines = string | undefined;

/** How the end of a message body is found (RFC 9112 section 6). */
export type Framing =
  | { readonly kind: "none" }
  | { readonly kind: "length"; readonly lengthBytes: number }
  | { readonly kind: "chunked" }
  | { readonly kind: "until-close" };

export const NO_BODY: Framing = Object.freeze({ kind: "none" });
export const CHUNKED: Framing = Object.freeze({ kind: "chunked" });
export const UNTIL_CLOSE: Framing = Object.freeze({ kind: "until-close" });

const ZERO_LENGTH: Framing = Object.freeze({ kind: "length", lengthBytes: 0 });

/** A body of exactly `lengthBytes` bytes. */
export function lengthFraming(lengthBytes: number): Framing {
  return lengthBytes === 0 ? ZERO_LENGTH : { kind: "length", lengthBytes };
}

/** Whether at least one body byte must, or may, follow the head. */
export function hasBody(framing: Framing): boolean {
  return framing.kind === "length" ? framing.lengthBytes > 0 : framing.kind !== "none";
}

/** The protocol versions this codec speaks. */
export type Version = "1.0" | "1.1";

/** Which of the four request-target forms of RFC 9112 section 3.2 a request used. */
export type TargetForm = "origin" | "absolute" | "authority" | "asterisk";

/** A request head that passed every check of the strict reader. */
export interface RequestHead {
  readonly method: string;
  /** The request-target exactly as sent. */
  readonly target: string;
  readonly targetForm: TargetForm;
  /**
   * The one authority (`host[:port]`) this request is for: that of an absolute-form or CONNECT target, otherwise
   * the Host field. Route on it and forward it; `undefined` only in HTTP/1.0 without Host.
   */
  readonly authority: string | undefined;
  readonly version: Version;
  readonly fields: RawFields;
  readonly fieldLines: FieldLines;
  readonly framing: Framing;
  /** What the client wants: false after `Connection: close`, and in HTTP/1.0 without `keep-alive`. */
  readonly keepAlive: boolean;
  /** `Expect: 100-continue` in HTTP/1.1. */
  readonly expectContinue: boolean;
  /**
   * Lower-cased Upgrade value, when Connection names `upgrade`, the version is 1.1, there is no body and `h2c` is not
   * among the protocols; otherwise the offer must be ignored and this is `undefined`.
   */
  readonly upgrade: string | undefined;
  /** The Host value as sent; may differ from `authority`, which wins. */
  readonly host: string | undefined;
  readonly headSizeBytes: number;
}

/** What the lenient reader of answers tolerated. Any of them forbids reusing the connection. */
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

/** The head of an answer, final or informational. */
export interface ResponseHead {
  readonly version: Version;
  readonly status: number;
  readonly reason: string;
  readonly fields: RawFields;
  readonly fieldLines: FieldLines;
  readonly framing: Framing;
  /** Whether the connection may carry another exchange as far as this head can tell; false with any oddity. */
  readonly keepAlive: boolean;
  /** Lower-cased Upgrade value of a 101. */
  readonly upgrade: string | undefined;
  /** What was tolerated in the head; the body may add more, see `ResponseReader.oddities`. */
  readonly oddities: readonly Oddity[];
  readonly headSizeBytes: number;
}

/** Bounds on what one message may make the reader hold or do. */
export interface Limits {
  /** The start line and all fields, with their line ends. */
  readonly headBytes: number;
  readonly fieldCount: number;
  /** The trailer section with its line ends. */
  readonly trailerBytes: number;
  /** One chunk-size line with its extensions. */
  readonly chunkLineBytes: number;
  /** All chunk extensions of one message together, so that tiny chunks cannot carry endless ballast. */
  readonly chunkExtensionBytes: number;
  /** Informational answers before a final one. */
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
 * Origins are chattier than clients: security policies and cookies fill many lines. What browsers, curl and Node take is
 * bounded by about this size and by thousands of fields.
 */
export const RESPONSE_LIMITS: Limits = Object.freeze({ ...REQUEST_LIMITS, headBytes: 262_144, fieldCount: 2000 });
