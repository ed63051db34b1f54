import type { SharedBytes } from "@headworks/sockets";
import {
  allowedTrailers,
  fieldFraming,
  HeadFacts,
  isBlank,
  plainLines,
  readFieldLines,
  strayByteCode,
} from "./fields.ts";
import { CR, isAuthority, isAuthorityWithPort, LF, SP, TARGET, TCHAR } from "./grammar.ts";
import { MessageReader, type MessageSink } from "./message-reader.ts";
import {
  type Framing,
  hasBody,
  Http1Error,
  type Http1ErrorCode,
  type Limits,
  NO_BODY,
  type RawFields,
  REQUEST_LIMITS,
  type RequestHead,
  RESPONSE_LIMITS,
  type TargetForm,
  type Version,
} from "./message.ts";

export interface RequestReaderOptions {
  /**
   * Accepts `user:password@` before the host of an absolute target and an empty port after it, as some clients send,
   * and omits both from `authority`. The forwarded target must then be rebuilt. Otherwise refused (RFC 9110 section
   * 4.2.4).
   */
  readonly tidiesAuthority?: boolean;
}

/** Old clients send an empty line after a body; one before a request line is skipped (RFC 9112 section 2.2). */
const EMPTY_LINE = "\r\n";

/** Shared by all readers while they parse a head; idle ones keep nothing. */
const sharedFacts = new HeadFacts("requests");

/**
 * Reads requests one at a time from arbitrarily split input and refuses everything ambiguous. Never throws on input;
 * an error is reported to the sink once and ends the reader.
 */
export class RequestReader extends MessageReader<RequestHead> {
  readonly #tidiesAuthority: boolean;
  #isAfterEmptyLine = false;

  constructor(sink: MessageSink<RequestHead>, limits: Partial<Limits> = {}, options: RequestReaderOptions = {}) {
    super(sink, { ...REQUEST_LIMITS, ...limits }, { dropsExtensions: false, tolerate: undefined });
    this.#tidiesAuthority = options.tidiesAuthority ?? false;
  }

  protected override readHead(chunk: SharedBytes, at: number): number {
    const { collector } = this;
    let end = collector.heldBytes === 0 ? collector.takeClean(chunk, at) : -1;
    if (end < 0) {
      end = collector.take(chunk, at);
      if (end < 0) {
        if (collector.overflowed) throw new Http1Error("head-too-large");
        return chunk.length;
      }
    }
    if (collector.text === EMPTY_LINE && !this.#isAfterEmptyLine) {
      this.#isAfterEmptyLine = true;
      collector.reset();
      return end;
    }
    this.#isAfterEmptyLine = false;
    const { fieldCount } = this.limits;
    const head = parseRequestHead(collector.text, collector.isClean, fieldCount, sharedFacts, this.#tidiesAuthority);
    this.beginBody(head, head.framing);
    return end;
  }

  protected override parseTrailers(text: string): RawFields {
    sharedFacts.reset();
    const fields = readFieldLines(text, 0, false, this.limits.fieldCount, sharedFacts);
    if (allowedTrailers(fields) !== fields) throw new Http1Error("forbidden-trailer");
    return fields;
  }

  protected override asError(code: Http1ErrorCode): Http1Error {
    return new Http1Error(code);
  }
}

const SLASH = 0x2f;
const HTTP_1_1 = "HTTP/1.1\r\n";
const HTTP_1_0 = "HTTP/1.0\r\n";
const VERSION_LENGTH = HTTP_1_1.length;

/** Letters only, as in http, https, ws and wss: some parsers fail on the digits that RFC 3986 allows. */
const SCHEME = /^[a-z]+:\/\//i;

/**
 * Parses a request head including the empty line (RFC 9112 sections 3 to 6, strict).
 * @param isClean  the text contains only field-value characters and CR LF pairs; affects only speed
 * @param tidiesAuthority  see {@link RequestReaderOptions}
 * @throws Http1Error
 */
function parseRequestHead(
  text: string,
  isClean: boolean,
  fieldCount: number,
  facts: HeadFacts,
  tidiesAuthority = false,
): RequestHead {
  let at = 0;
  let code = text.charCodeAt(0);
  while (TCHAR[code] === 1) code = text.charCodeAt(++at);
  if (code !== SP || at === 0) throw new Http1Error(methodErrorCode(code, at));
  const method = text.slice(0, at);

  const targetStart = ++at;
  code = text.charCodeAt(at);
  while (TARGET[code] === 1) code = text.charCodeAt(++at);
  if (code !== SP || at === targetStart) throw new Http1Error(targetErrorCode(code, at, targetStart));
  const target = text.slice(targetStart, at);
  at++;

  const version: Version | undefined = text.startsWith(HTTP_1_1, at)
    ? "1.1"
    : text.startsWith(HTTP_1_0, at)
      ? "1.0"
      : undefined;
  if (version === undefined) throw new Http1Error(versionErrorCode(text, at));

  facts.reset();
  const fieldsStart = at + VERSION_LENGTH;
  const fields = readFieldLines(text, fieldsStart, isClean, fieldCount, facts);
  const targetForm = targetFormOf(method, target);
  const authority = authorityOf(targetForm, target, version, facts, tidiesAuthority);
  const framing = requestFraming(method, version, facts);
  const isModern = version === "1.1";
  return {
    method,
    target,
    targetForm,
    authority,
    version,
    fields,
    fieldLines: plainLines(text, fieldsStart, facts),
    framing,
    keepAlive: !facts.connectionClose && (isModern || facts.connectionKeepAlive),
    expectContinue: isModern && facts.expect !== undefined && facts.expect.toLowerCase() === "100-continue",
    upgrade: isModern && facts.connectionUpgrade && !hasBody(framing) ? offeredUpgrade(facts) : undefined,
    host: facts.host,
    headSizeBytes: text.length,
  };
}

/** h2c upgrades were removed from HTTP (RFC 9113 section 3.1); requests behind one would pass unread. */
function offeredUpgrade({ upgrade }: HeadFacts): string | undefined {
  const lower = upgrade?.toLowerCase();
  return lower?.split(",").some((protocol) => protocol.trim() === "h2c") === true ? undefined : lower;
}

function methodErrorCode(code: number, at: number): Http1ErrorCode {
  if (at === 0 && (code === CR || code === LF)) return "leading-empty-line";
  if (code === CR || code === LF) return "bad-request-line";
  return code < SP || code === 0x7f ? "control-character" : "bad-method";
}

function targetErrorCode(code: number, at: number, targetStart: number): Http1ErrorCode {
  if (at === targetStart && code === SP) return "bad-request-line";
  if (code === CR || code === LF) return "bad-request-line";
  return code < SP || code === 0x7f ? strayByteCode(code) : "bad-target";
}

function versionErrorCode(text: string, at: number): Http1ErrorCode {
  const lineEnd = text.indexOf("\r\n", at);
  const rest = lineEnd < 0 ? text.slice(at) : text.slice(at, lineEnd);
  if (/[\r\n]/.test(rest)) return "bad-line-end";
  if (/^HTTP\/[0-9]\.[0-9]$/.test(rest)) return "unsupported-version";
  return /[ \t]/.test(rest) ? "bad-request-line" : "bad-version";
}

function targetFormOf(method: string, target: string): TargetForm {
  if (method === "CONNECT") {
    if (!isAuthorityWithPort(target)) throw new Http1Error("bad-target");
    return "authority";
  }
  if (target.charCodeAt(0) === SLASH) return "origin";
  if (target === "*" && method === "OPTIONS") return "asterisk";
  if (!SCHEME.test(target)) throw new Http1Error("bad-target");
  return "absolute";
}

function authorityOf(
  form: TargetForm,
  target: string,
  version: Version,
  facts: HeadFacts,
  tidiesAuthority: boolean,
): string | undefined {
  const host = facts.host;
  if (facts.hostCount > 1) throw new Http1Error("repeated-host");
  if (host === undefined && version === "1.1") throw new Http1Error("missing-host");
  if (form === "origin" || form === "asterisk") {
    if (host !== undefined && !isAuthority(host)) throw new Http1Error("bad-host");
    return host;
  }
  // RFC 9110 section 7.2 requires an empty Host if the target has no authority.
  const plainHost = host !== undefined && tidiesAuthority && form === "absolute" ? tidyAuthority(host) : host;
  if (plainHost !== undefined && plainHost !== "" && !isAuthority(plainHost)) throw new Http1Error("bad-host");
  if (form === "authority") return target;
  const start = target.indexOf("://") + 3;
  let end = start;
  while (end < target.length && !"/?".includes(target.charAt(end))) end++;
  const written = target.slice(start, end);
  const authority = tidiesAuthority ? tidyAuthority(written) : written;
  if (!isAuthority(authority)) throw new Http1Error("bad-target");
  return authority;
}

/** Removes user information and an empty port, unless several "@" make the host ambiguous. */
function tidyAuthority(text: string): string {
  const at = text.indexOf("@");
  const start = at >= 0 && text.lastIndexOf("@") === at ? at + 1 : 0;
  return text.slice(start, text.endsWith(":") ? -1 : undefined);
}

function requestFraming(method: string, version: Version, facts: HeadFacts): Framing {
  if (facts.transferEncoding === undefined && facts.contentLength === undefined) return NO_BODY;
  const framing = fieldFraming(version, facts);
  if (method !== "CONNECT") return framing;
  if (hasBody(framing)) throw new Http1Error("connect-with-body");
  return NO_BODY;
}

/** The readable parts of a refused head, for records. They must not be forwarded. */
export interface RefusedHead {
  readonly method: string;
  /** Everything between method and version. */
  readonly target: string;
  readonly version: Version;
  /** The lines that are certainly fields. */
  readonly fields: RawFields;
}

const REFUSED_METHOD = /^[\w!#$%&'*+.^`|~-]+(?= )/u;
const FIELD_LINE = /^([\w!#$%&'*+.^`|~-]+):[ \t]*(.*)$/u;

const VERSIONS: ReadonlyMap<string, Version> = new Map([
  [" HTTP/1.0", "1.0"],
  [" HTTP/1.1", "1.1"],
]);

const VERSION_SUFFIX_LENGTH = " HTTP/1.1".length;

/** Parses a refused head as far as possible. `text`: one character per byte, possibly truncated. */
export function readRefusedHead(text: string): RefusedHead | undefined {
  const [start = "", ...lines] = text.split(/\r\n|[\r\n]/u);
  const method = REFUSED_METHOD.exec(start)?.[0];
  const version = VERSIONS.get(start.slice(-VERSION_SUFFIX_LENGTH));
  if (method === undefined || version === undefined) return undefined;
  const target = start.slice(method.length + 1, -VERSION_SUFFIX_LENGTH);
  return target === "" ? undefined : { method, target, version, fields: plainFields(lines) };
}

function plainFields(lines: readonly string[]): RawFields {
  const fields: RawFields = [];
  for (const line of lines) {
    const [, name, value] = FIELD_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    let end = value.length;
    while (end > 0 && isBlank(value.charCodeAt(end - 1))) end -= 1;
    fields.push(name, value.slice(0, end));
    if (fields.length === 2 * RESPONSE_LIMITS.fieldCount) break;
  }
  return fields;
}
