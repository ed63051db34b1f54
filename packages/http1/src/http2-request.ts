import { isAuthority, isAuthorityWithPort } from "./authority.ts";
import { fieldValues, removeField } from "./fields.ts";
import { announcedFraming } from "./http2-framing.ts";
import { lengthFraming, NO_BODY, type Framing, type RawFields } from "./message.ts";

/** A request of HTTP/2 that means the same to everybody who reads it over HTTP/1.1. */
export interface Http2Request {
  readonly method: string;
  /** Path and query, or `*`. */
  readonly target: string;
  readonly targetForm: "origin" | "asterisk";
  readonly scheme: "http" | "https";
  readonly authority: string;
  /** Host is the first of them. */
  readonly fields: RawFields;
  readonly framing: Framing;
  /**
   * `websocket` when one is to begin on the stream (RFC 8441): a GET as in HTTP/1.1, but without the fields that prove
   * there that the server understood.
   */
  readonly upgrade: string | undefined;
}

/** Why a field section of HTTP/2 is no such request. */
export interface Http2RequestProblem {
  readonly problem: "malformed" | "too-many-fields" | "tunnel";
  readonly message: string;
}

/** Visible ASCII without the fragment mark, and octets beyond ASCII, as in HTTP/1.1. */
const TARGET = /^\/[\x21\x22\x24-\x7e\x80-\xff]*$/;
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
/** No control character but the tab, nothing beyond one byte, no blanks at the ends. */
const VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

/** Fields of an HTTP/1 connection, in lower case; what has one is malformed in HTTP/2 (RFC 9113, 8.2.2). */
export const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/** Whether a value of TE may stand in HTTP/2 (RFC 9113, 8.2.2). */
export function isHttp2Te(value: string): boolean {
  return value === "trailers" || value.toLowerCase() === "trailers";
}

const malformed = (message: string): Http2RequestProblem => ({ problem: "malformed", message });

/**
 * Makes a request of a field section `[name0, value0, …]` (RFC 9113, 8.3.1). Judges everything that could mean something
 * else to whoever gets it over HTTP/1, also what libraries of HTTP/2 refuse by themselves.
 * @param fields  the section without its pseudo-fields, pieces of Cookie joined; becomes the request's
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
  // What HTTP/1.1 says with a GET (RFC 8441, 5).
  const method = isWebSocket ? "GET" : pseudo.method;
  if (method === undefined || !METHOD.test(method)) return malformed("The request has no valid :method");
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

/** Why a request for a tunnel that is no WebSocket is refused: CONNECT of a place (RFC 9113, 8.5), or of a protocol (RFC 8441, 4). */
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

/** What stands before the fields, each once; or what is wrong with it. */
function pseudoFields(section: readonly string[]): Pseudo | string {
  const found: Pseudo = {};
  let isBehind = false;
  for (let at = 0; at < section.length; at += 2) {
    const name = section[at] ?? "";
    if (!name.startsWith(":")) {
      isBehind = true;
      continue;
    }
    if (isBehind) return "A pseudo-field stands behind a field";
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

/**
 * The one host that a request is for. Afterwards the fields have it as Host, first, as requests of HTTP/1.1 do, for
 * whoever compares fields.
 */
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
