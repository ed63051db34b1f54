import type { ConfigDocument } from "@headworks/gateway-contract";

const OWN_PATHS: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);
const METRICS_PATH = "/metrics";

/** Why a request target is refused before routing. */
export type PathFault =
  | "empty"
  | "not-absolute"
  | "forbidden-character"
  | "not-ascii"
  | "backslash"
  | "fragment"
  | "dot-segment"
  | "bad-percent-encoding"
  | "encoded-nul"
  | "overlong-encoding";

const PLAIN = 0;
const FORBIDDEN = 1;
const SLASH = 2;
const BACKSLASH = 3;
const QUESTION = 4;
const HASH = 5;
const PERCENT = 6;
const KINDS = new Uint8Array(128);
for (let code = 0; code <= 0x20; code += 1) KINDS[code] = FORBIDDEN;
KINDS[0x7f] = FORBIDDEN;
KINDS["/".charCodeAt(0)] = SLASH;
KINDS["\\".charCodeAt(0)] = BACKSLASH;
KINDS["?".charCodeAt(0)] = QUESTION;
KINDS["#".charCodeAt(0)] = HASH;
KINDS["%".charCodeAt(0)] = PERCENT;

const DOT = 0x2e;
const ENCODED_SLASH = 0x2f;
const ENCODED_BACKSLASH = 0x5c;
const SEMICOLON = 0x3b;
const NOT_ENCODED = -1;

/**
 * Checks whether a target in origin form may be routed and forwarded. A target is refused if a server behind the
 * gateway could read it as another path than the one the route was chosen by: a dot segment (`.` or `..`, also with
 * its dots as `%2e`, with `;` parameters, or cut off by an encoded slash or backslash), a backslash, a byte outside
 * visible ASCII, a fragment, a `%` without two hexadecimal digits, `%00`, and overlong UTF-8 (RFC 3629 section 3),
 * which hides a character from non-decoding readers. Everything else passes as {@link canonicalTarget} returns it:
 * `%2f` stays `%2f` and is no segment boundary, and `//` stays an empty segment.
 */
export function checkPath(target: string): "ok" | PathFault {
  if (target === "") return "empty";
  if (target.charCodeAt(0) !== ENCODED_SLASH) return "not-absolute";
  for (let at = 0; at < target.length; at += 1) {
    const code = target.charCodeAt(at);
    if (code > 0x7f) return "not-ascii";
    const kind = KINDS[code];
    if (kind === PLAIN) continue;
    if (kind === SLASH) {
      if (isDotSegment(target, at + 1)) return "dot-segment";
    } else if (kind === PERCENT) {
      const fault = percentFault(target, at);
      if (fault !== undefined) return fault;
      at += 2;
    } else if (kind === QUESTION) return checkQuery(target, at + 1);
    else if (kind === BACKSLASH) return "backslash";
    else return kind === HASH ? "fragment" : "forbidden-character";
  }
  return "ok";
}

/** Canonical form of `%xx` by byte; undefined for encodings that stay as sent. */
const CANONICAL: readonly (string | undefined)[] = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  if (/[A-Za-z0-9._~-]/.test(character)) return character;
  if (/[:/?#[\]@!$&'()*+,;=%\\]/.test(character)) return undefined;
  return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
});

/**
 * The target in the form that routes are chosen by and upstreams get. In the path, encodings of letters, digits and
 * `-._~` are decoded, since every server treats them as equal (RFC 3986 section 6.2.2.2): otherwise `/%61dmin` would
 * bypass the route of `/admin` and reach the same resource. Other encodings get upper-case digits, except those of
 * delimiters and of `%`, which stay as sent. A path with an invalid `%` is returned unchanged, to be refused by
 * {@link checkPath}.
 */
export function canonicalTarget(target: string): string {
  const first = target.indexOf("%");
  if (first === -1) return target;
  const mark = target.indexOf("?");
  const end = mark === -1 ? target.length : mark;
  let canonical = "";
  let from = 0;
  for (let at = first; at !== -1 && at < end; at = target.indexOf("%", at + 3)) {
    const byte = encodedByte(target, at);
    if (byte === NOT_ENCODED) return target;
    const text = CANONICAL[byte];
    if (text === undefined || target.startsWith(text, at)) continue;
    canonical += target.slice(from, at) + text;
    from = at + 3;
  }
  return from === 0 ? target : canonical + target.slice(from);
}

/** The query is forwarded unchanged, so only characters that no target may contain are refused. */
function checkQuery(target: string, start: number): "ok" | PathFault {
  for (let at = start; at < target.length; at += 1) {
    const code = target.charCodeAt(at);
    if (code > 0x7f) return "not-ascii";
    const kind = KINDS[code];
    if (kind === FORBIDDEN) return "forbidden-character";
    if (kind === HASH) return "fragment";
  }
  return "ok";
}

/** Whether the segment at `at` is `.` or `..` for any server that decodes or strips parameters. */
function isDotSegment(target: string, at: number): boolean {
  let end = at;
  let dots = 0;
  for (;;) {
    if (target.charCodeAt(end) === DOT) end += 1;
    else if (encodedByte(target, end) === DOT) end += 3;
    else break;
    dots += 1;
    if (dots > 2) return false;
  }
  if (dots === 0) return false;
  if (end === target.length) return true;
  const kind = KINDS[target.charCodeAt(end)];
  if (kind === SLASH || kind === BACKSLASH || kind === QUESTION || kind === HASH) return true;
  if (target.charCodeAt(end) === SEMICOLON) return true;
  const encoded = encodedByte(target, end);
  return encoded === ENCODED_SLASH || encoded === ENCODED_BACKSLASH || encoded === SEMICOLON;
}

function percentFault(target: string, at: number): PathFault | undefined {
  const byte = encodedByte(target, at);
  if (byte === NOT_ENCODED) return "bad-percent-encoding";
  if (byte === 0) return "encoded-nul";
  if (byte === ENCODED_SLASH || byte === ENCODED_BACKSLASH) {
    return isDotSegment(target, at + 3) ? "dot-segment" : undefined;
  }
  return byte >= 0xc0 && isOverlong(byte, encodedByte(target, at + 3)) ? "overlong-encoding" : undefined;
}

/** The first byte alone is no fault: old links use Latin-1, where `%C0` is a letter. */
function isOverlong(first: number, second: number): boolean {
  if (second < 0x80 || second > 0xbf) return false;
  if (first === 0xc0 || first === 0xc1) return true;
  if (first === 0xe0) return second < 0xa0;
  if (first === 0xf0) return second < 0x90;
  if (first === 0xf8) return second < 0x88;
  return first === 0xfc && second < 0x84;
}

/** The byte encoded by `%xx` at `at`. */
function encodedByte(target: string, at: number): number {
  if (target.charCodeAt(at) !== 0x25) return NOT_ENCODED;
  const high = hexDigit(target.charCodeAt(at + 1));
  const low = hexDigit(target.charCodeAt(at + 2));
  return high < 0 || low < 0 ? NOT_ENCODED : high * 16 + low;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Whether the gateway serves a path itself, before routing; `/metrics` only if a listener has it. */
export function isOwnPath(path: string, { listeners = [] }: Partial<Pick<ConfigDocument, "listeners">>): boolean {
  return OWN_PATHS.has(path) || (path === METRICS_PATH && listeners.some(({ metrics }) => metrics === true));
}
