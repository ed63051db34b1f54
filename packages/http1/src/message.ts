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

/** Origins send larger heads than clients. Browsers, curl and Node accept about this size. */
export const RESPONSE_LIMITS: Limits = Object.freeze({ ...REQUEST_LIMITS, headBytes: 262_144, fieldCount: 2000 });

const REFUSALS = {
  "leading-empty-line": [400, "The message starts with an empty line, or a request with more than one"],
  "bad-line-end": [400, "A line must end with CR LF, and CR or LF may stand nowhere else"],
  "control-character": [400, "The head contains a control character"],
  "bad-request-line": [400, "The request line is not 'method SP target SP version'"],
  "bad-method": [400, "The method is not a token"],
  "bad-target": [400, "The request target is malformed or does not fit the method"],
  "bad-version": [400, "The protocol version is malformed"],
  "unsupported-version": [505, "Only HTTP/1.0 and HTTP/1.1 are spoken here"],
  "bad-status-line": [502, "The status line is malformed"],
  "bad-field-name": [400, "A field name is empty or not a token"],
  "space-before-colon": [400, "White space stands between a field name and its colon"],
  "space-before-field": [400, "White space stands before the first field"],
  "line-folding": [400, "A field value is folded over several lines"],
  "too-many-fields": [431, "The message has too many fields"],
  "head-too-large": [431, "The head is too large"],
  "missing-host": [400, "An HTTP/1.1 request needs a Host field"],
  "repeated-host": [400, "The request has more than one Host field"],
  "bad-host": [400, "The Host field is not host[:port]"],
  "bad-content-length": [400, "Content-Length is not a plain number of at most 15 digits"],
  "repeated-content-length": [400, "Content-Length is given more than once"],
  "content-length-with-transfer-encoding": [400, "Content-Length and Transfer-Encoding exclude each other"],
  "bad-transfer-encoding": [400, "Transfer-Encoding is not exactly 'chunked'"],
  "repeated-transfer-encoding": [400, "Transfer-Encoding is given more than once"],
  "unknown-transfer-coding": [501, "Only the transfer coding 'chunked' is supported"],
  "transfer-encoding-in-http-1.0": [400, "Transfer-Encoding is not defined for HTTP/1.0"],
  "ambiguous-framing": [400, "Two readings of the head disagree about where the message ends"],
  "connect-with-body": [400, "A CONNECT request cannot have a body"],
  "bad-chunk-size": [400, "A chunk size is not 1 to 8 hexadecimal digits"],
  "chunk-extension": [400, "Chunk extensions are not accepted"],
  "bad-chunk-extension": [400, "A chunk extension is malformed"],
  "chunk-line-too-long": [400, "A chunk-size line, or all chunk extensions together, are too long"],
  "bad-chunk-end": [400, "Chunk data is not followed by CR LF"],
  "forbidden-trailer": [400, "A trailer carries a field that is only allowed in the head"],
  "trailers-too-large": [431, "The trailer section is too large"],
  truncated: [400, "The peer ended the connection inside a message"],
  "unexpected-answer": [502, "Bytes arrived although no response is expected"],
  "unexpected-upgrade": [502, "The response switches protocols although the request offered no upgrade"],
  "too-many-informational": [502, "Too many informational responses before the final one"],
  "unsafe-text": [500, "A part of the head cannot be written: it would change the meaning of the message"],
} as const satisfies Record<string, readonly [status: number, message: string]>;

/** Stable name of a reason to refuse a message. */
export type Http1ErrorCode = keyof typeof REFUSALS;

/** All codes, for tables in documentation and tests. */
export const HTTP1_ERROR_CODES = Object.freeze(Object.keys(REFUSALS) as Http1ErrorCode[]);

/** A message was refused. Its connection cannot be used for another message. */
export class Http1Error extends Error {
  override readonly name = "Http1Error";
  readonly code: Http1ErrorCode;
  /** Suggested response status: 400, 431, 501, 505 for the client's fault, 502 for an origin's. */
  readonly status: number;

  constructor(code: Http1ErrorCode, status: number = REFUSALS[code][0]) {
    super(REFUSALS[code][1]);
    this.code = code;
    this.status = status;
  }
}

/** Asserts that the owner raised a valid event: a failure is a bug in our code, never caused by a peer. */
export function demand(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Error(`Broken rule: ${rule}`);
}
