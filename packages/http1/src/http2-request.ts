import { fieldValues, removeField } from "./fields.ts";
import { isAuthority, isAuthorityWithPort, isToken } from "./grammar.ts";
import { CHUNKED, type Framing, lengthFraming, NO_BODY, type RawFields } from "./message.ts";

/** An HTTP/2 request that has one unambiguous HTTP/1.1 equivalent. */
export interface Http2Request {
  readonly method: string;
  /** Path and query, or `*`. */
  readonly target: string;
  readonly targetForm: "origin" | "asterisk";
  readonly scheme: "http" | "https";
  readonly authority: string;
  /** Host comes first. */
  readonly fields: RawFields;
  readonly framing: Framing;
  /** `websocket` for an extended CONNECT (RFC 8441): a GET as in HTTP/1.1, but without Sec-WebSocket-Key. */
  readonly upgrade: string | undefined;
}

/** Why an HTTP/2 field section is refused. */
export interface Http2RequestProblem {
  readonly problem: "malformed" | "too-many-fields" | "tunnel";
  readonly message: string;
}

/** Visible ASCII without "#", and non-ASCII octets, as in HTTP/1.1. */
const TARGET = /^\/[\x21\x22\x24-\x7e\x80-\xff]*$/;
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

/** No control characters except tab, nothing beyond one byte, no white space at the ends. */
const VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

/** Connection-specific fields in lower case, which are malformed in HTTP/2 (RFC 9113, 8.2.2). */
export const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/** Whether a TE value is allowed in HTTP/2 (RFC 9113, 8.2.2). */
export function isHttp2Te(value: string): boolean {
  return value === "trailers" || value.toLowerCase() === "trailers";
}

const malformed = (message: string): Http2RequestProblem => ({ problem: "malformed", message });

/**
 * Converts a field section `[name0, value0, …]` into a request (RFC 9113, 8.3.1). Rejects everything that an HTTP/1
 * recipient could interpret differently, including what HTTP/2 libraries refuse themselves.
 * @param fields  the section without pseudo-fields, Cookie pieces joined; becomes the request's fields
 * @param isWhole  no body follows
 */
export function readHttp2Request(
  section: readonly string[],
  fields: RawFields,
  isWhole: boolean,
  maxFields: number,
): Http2Request | Http2RequestProblem {
  const pseudo = pseudoFields(section);
  if (typeof pseudo === "string") return malformed(pseudo);
  const { path, scheme, protocol } = pseudo;
  const isWebSocket = pseudo.method === "CONNECT" && protocol === "websocket";
  if (!isWebSocket && (pseudo.method === "CONNECT" || protocol !== undefined)) return tunnelProblem(pseudo);
  if (isWebSocket && isWhole) return malformed("A WebSocket cannot end with its head");
  // The equivalent HTTP/1.1 method (RFC 8441, 5).
  const method = isWebSocket ? "GET" : pseudo.method;
  if (method === undefined || !isToken(method)) return malformed("The request has no valid :method");
  if (scheme !== "http" && scheme !== "https") return malformed("The request has no valid :scheme");
  const isAsterisk = path === "*" && method === "OPTIONS";
  if (path === undefined || (!isAsterisk && !TARGET.test(path))) return malformed("The request has no valid :path");
  if (fields.length > 2 * maxFields) {
    const message = `The request has ${fields.length / 2} fields, at most ${maxFields} are allowed`;
    return { problem: "too-many-fields", message };
  }
  const problem = fieldProblem(fields);
  if (problem !== undefined) return malformed(problem);
  const authority = authorityOf(pseudo.authority, fields);
  if (authority === undefined) return malformed("The request names no host, or two that differ");
  const framing = framingOf(fields, isWhole || isWebSocket);
  if (framing === undefined) return malformed("The request has no valid content-length");
  if (isWebSocket) removeField(fields, "sec-websocket-key");
  return {
    method,
    target: path,
    targetForm: isAsterisk ? "asterisk" : "origin",
    scheme,
    authority,
    fields,
    framing,
    upgrade: isWebSocket ? protocol : undefined,
  };
}

interface Pseudo {
  method?: string;
  scheme?: string;
  authority?: string;
  path?: string;
  protocol?: string;
}

const PSEUDO_NAMES = {
  ":method": "method",
  ":scheme": "scheme",
  ":authority": "authority",
  ":path": "path",
  ":protocol": "protocol",
} as const;

/** The refusal of a CONNECT that is no WebSocket: a tunnel (RFC 9113, 8.5) or another protocol (RFC 8441, 4). */
function tunnelProblem({ method, scheme, path, authority, protocol }: Pseudo): Http2RequestProblem {
  if (method !== "CONNECT") return malformed("Only CONNECT may have :protocol");
  if (protocol === undefined) {
    if (scheme !== undefined || path !== undefined) return malformed("CONNECT has neither :scheme nor :path");
    if (!isAuthorityWithPort(authority ?? "")) return malformed("The :authority of CONNECT is not host:port");
  } else if (scheme === undefined || path === undefined || !isAuthority(authority ?? "")) {
    return malformed("CONNECT with :protocol has :scheme, :path and :authority");
  }
  return { problem: "tunnel", message: "Of all tunnels only WebSockets are there" };
}

/** The pseudo-fields, each at most once, or the problem with them. */
function pseudoFields(section: readonly string[]): Pseudo | string {
  const found: Pseudo = {};
  let isAfterPseudo = false;
  for (let at = 0; at < section.length; at += 2) {
    const name = section[at] ?? "";
    if (!name.startsWith(":")) {
      isAfterPseudo = true;
      continue;
    }
    if (isAfterPseudo) return "A pseudo-field stands behind a field";
    if (!Object.hasOwn(PSEUDO_NAMES, name)) return "The request has a pseudo-field that does not exist";
    const key = PSEUDO_NAMES[name as keyof typeof PSEUDO_NAMES];
    if (found[key] !== undefined) return `The request has ${name} twice`;
    found[key] = section[at + 1] ?? "";
  }
  return found;
}

function fieldProblem(fields: readonly string[]): string | undefined {
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (!NAME.test(name)) return "The request has a field name that is not valid";
    if (!VALUE.test(fields[at + 1] ?? "")) return `The value of the field ${name} is not valid`;
    if (CONNECTION_FIELDS.has(name)) return `The field ${name} has no place in HTTP/2`;
    if (name === "te" && !isHttp2Te(fields[at + 1] ?? "")) return "TE may only be trailers in HTTP/2";
  }
  return undefined;
}

/** Determines the request's only host and puts it into the fields as Host, first, as in HTTP/1.1. */
function authorityOf(named: string | undefined, fields: string[]): string | undefined {
  const [host, second] = fieldValues(fields, "host");
  if (second !== undefined) return undefined;
  const authority = named ?? host;
  if (authority === undefined || !isAuthority(authority)) return undefined;
  if (host === undefined) fields.unshift("host", authority);
  else if (host.toLowerCase() !== authority.toLowerCase()) return undefined;
  return authority;
}

function framingOf(fields: Readonly<RawFields>, isWhole: boolean): Framing | undefined {
  const announced = announcedFraming(fields);
  if (announced === undefined || !isWhole) return announced;
  if (announced.kind === "chunked") return NO_BODY;
  return announced.kind === "length" && announced.lengthBytes === 0 ? lengthFraming(0) : undefined;
}

const LENGTH = /^[0-9]{1,15}$/;

/**
 * The framing announced by HTTP/2 fields: a length, or none, which becomes chunked over HTTP/1.1. Undefined if they
 * are invalid or contradictory (RFC 9113, 8.1.1).
 */
export function announcedFraming(fields: Readonly<RawFields>): Framing | undefined {
  const lengths = fieldValues(fields, "content-length");
  const [length] = lengths;
  if (length === undefined) return CHUNKED;
  return lengths.length === 1 && LENGTH.test(length) ? lengthFraming(Number(length)) : undefined;
}
