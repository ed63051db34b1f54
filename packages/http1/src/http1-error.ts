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
