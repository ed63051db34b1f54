import { unicodeHost } from "@headworks/host-patterns";
import { percentDecoded, utf8Reading } from "@headworks/http-fields";
import { readJson } from "@headworks/json";

/** The direction of a stream message: from the server or from the client. */
export type Direction = "in" | "out";

/** Both directions of a message. */
export const DIRECTIONS: readonly Direction[] = ["in", "out"];

/** The state of an exchange: in progress, completed, or ended without a usable response. */
export type RecordState = "pending" | "complete" | "failed" | "closed";

/**
 * What a query sees of one captured exchange. Plain properties are cheap facts that a store keeps in columns;
 * methods stand for material that has to be fetched or decoded and are called only when the query asks for it. What is
 * known of streams is left out by a source that knows nothing of them, and only read when the query asks for it.
 */
export interface QueryRecord {
  readonly id: string;
  /** Position in the order of capture, when the store numbers its entries. */
  readonly seq?: number | undefined;
  readonly sessionId: string;
  /** Method token as sent. */
  readonly method: string;
  /** `http`, `https`, `ws`, `wss`. */
  readonly scheme: string;
  /** Host without port, as sent. */
  readonly host: string;
  /** Effective port, the scheme's default included. */
  readonly port: number;
  readonly path: string;
  /** Query without the leading `?`, empty when there is none. */
  readonly query: string;
  /** The full URL as shown to users. */
  readonly url: string;
  /** Undefined until a response head has arrived. */
  readonly status: number | undefined;
  /** `HTTP/1.1`, `HTTP/2`, `SOCKS5`. */
  readonly httpVersion: string | undefined;
  readonly requestType: string | undefined;
  /** Media type of the response body without parameters. */
  readonly responseType: string | undefined;
  /** Coarse kind of resource: `document`, `script`, `image`, `websocket`, `tunnel` and so on. */
  readonly resourceType: string | undefined;
  readonly requestSizeBytes: number;
  readonly responseSizeBytes: number | undefined;
  readonly durationMs: number | undefined;
  /** Time to the first byte of the response. */
  readonly ttfbMs: number | undefined;
  /** Start of the exchange, milliseconds since 1970. */
  readonly timestampMs: number;
  /** `ip:port` of the client. */
  readonly clientAddress: string | undefined;
  readonly state: RecordState;
  readonly isPassthrough: boolean;
  readonly modified: boolean;
  /** Kinds of the rules that touched it: `rewrite`, `mock` and so on. */
  readonly applied: readonly string[];
  readonly note: string | undefined;
  readonly hasRequestBody: boolean;
  /** Whether the response had a body, of whatever kind, stored or not. */
  readonly hasResponseBody: boolean;
  /** How a gRPC call ended, by number; undefined while it runs and for everything else. */
  readonly grpcStatus?: number | undefined;
  /** `in` when a message of its stream came from the server. */
  readonly incoming?: "in" | undefined;
  /** `out` when a message of its stream came from the client. */
  readonly outgoing?: "out" | undefined;
  /** How many messages of a WebSocket connection are stored; undefined when there is none. */
  readonly webSocketMessages?: number | undefined;
  /** Request header fields as a flat list: name, value, name, value. */
  requestFields(): readonly string[];
  /** Response header fields as a flat list; empty while there is no response. */
  responseFields(): readonly string[];
  /** Decoded text of the request body as far as it is to be searched; undefined when there is none or it is not text. */
  requestText(): string | undefined;
  /** Decoded text of the response body as far as it is to be searched; undefined when there is none or it is not text. */
  responseText(): string | undefined;
  /** Texts of the stored messages of a WebSocket connection that went one of these ways, in any order. */
  webSocketTexts?(directions: readonly Direction[]): Iterable<string>;
}

const NON_ASCII = /[^\0-\x7f]/;
const ASCII_UPPER = /[A-Z]+/g;

/**
 * Lower-cases A to Z only. Facts that stores keep in columns are compared this way, because it is what a database's
 * `lower()` does without locale support, so that index and predicate agree on every input.
 */
export function foldAscii(text: string): string {
  if (!NON_ASCII.test(text)) return text.toLowerCase();
  return text.replace(ASCII_UPPER, (letters) => letters.toLowerCase());
}

/** Lower-cases all letters; used for header values, bodies and notes. */
export function foldUnicode(text: string): string {
  return text.toLowerCase();
}

/** Values of all header fields with that lower-case name. `fields` is flat: name, value, name, value. */
export function fieldValues(fields: readonly string[], lowerName: string): string[] {
  const values: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] ?? "";
    if (name.length === lowerName.length && foldAscii(name) === lowerName) values.push(fields[index + 1] ?? "");
  }
  return values;
}

/** Texts of fields, and what those whose octets are UTF-8 say, too. */
export function inBothReadings(texts: readonly string[]): readonly string[] {
  const readings = texts.map(utf8Reading).filter((text) => text !== undefined);
  return readings.length === 0 ? texts : [...texts, ...readings];
}

/** Every header field as `name: value`. */
export function fieldLines(fields: readonly string[]): string[] {
  const lines: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) lines.push(`${fields[index]}: ${fields[index + 1]}`);
  return lines;
}

/**
 * Cookies of both sides. With a name: the values of the cookies of exactly that name (cookie names are
 * case-sensitive, RFC 6265 section 5). Without: `name=value` of every cookie, attributes left out.
 */
export function cookiePairs(
  requestFields: readonly string[],
  responseFields: readonly string[],
  name: string | null,
): string[] {
  const found: string[] = [];
  const add = (pair: string): void => {
    const trimmed = pair.trim();
    if (trimmed === "") return;
    if (name === null) {
      found.push(trimmed);
      return;
    }
    const equals = trimmed.indexOf("=");
    if (equals !== -1 && trimmed.slice(0, equals).trimEnd() === name) found.push(trimmed.slice(equals + 1).trimStart());
  };
  for (const value of fieldValues(requestFields, "cookie")) for (const pair of value.split(";")) add(pair);
  for (const value of fieldValues(responseFields, "set-cookie")) add(value.split(";", 1)[0] ?? "");
  return found;
}

/**
 * Whether a text that is asked of a URL or a part of it can be there in encoded form only: percent-encoded, as the octets
 * of its UTF-8, or as A-labels. Then {@link READABLE} forms must be looked at too. In a pattern, escapes may stand for such
 * characters.
 */
export function asksReadable(asked: string, isPattern = false): boolean {
  return /[^\x21-\x7e]/u.test(asked) || (isPattern && /\\[uxp]/iu.test(asked));
}

/** The parts of a URL as people read and type them, made of what is sent. */
export const READABLE = { host: unicodeHost, path: readablePath, query: readableQuery, url: readableUrl } as const;

function readablePath(path: string): string {
  return percentDecoded(utf8Reading(path) ?? path);
}

function readableQuery(query: string): string {
  return readablePath(query.replaceAll("+", " "));
}

/** A URL in its readable form, if that differs. */
const ENCODED = /[%+\u0080-\uffff]|xn--/i;

function readableUrl(url: string): string {
  if (!ENCODED.test(url)) return url;
  const [start = "", scheme = "", user = "", host = ""] = /^([^:/?#]+:\/\/)([^/?#@]*@)?([^:/?#[]*)/.exec(url) ?? [];
  const mark = url.indexOf("?");
  const pathEnd = mark === -1 ? url.length : mark;
  const query = mark === -1 ? "" : `?${readableQuery(url.slice(mark + 1))}`;
  return `${scheme}${user}${unicodeHost(host)}${readablePath(url.slice(start.length, pathEnd))}${query}`;
}

/** Bodies above this many characters are not parsed as JSON. */
const MAX_JSON_SIZE = 16 * 1024 * 1024;

/** A body as JSON with numbers as written; undefined if it is not JSON or longer than 16 Mi characters. */
export function parseBodyJson(text: string): unknown {
  if (text.length > MAX_JSON_SIZE) return undefined;
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
}

/** The two halves of an exchange. */
type Side = "request" | "response";

class SideMaterial {
  textKnown = false;
  text: string | undefined;
  folded: string | undefined;
  jsonKnown = false;
  json: unknown;
}

/**
 * One evaluation of one predicate: remembers decoded, folded and parsed bodies so that several terms about the same
 * body pay once. It is emptied after each record and therefore never keeps a body alive.
 */
export class Evaluation {
  #request: SideMaterial | undefined;
  #response: SideMaterial | undefined;

  /** Forgets the record. */
  reset(): void {
    this.#request = undefined;
    this.#response = undefined;
  }

  /** Decoded body text of one side. */
  text(record: QueryRecord, side: Side): string | undefined {
    const material = this.#of(side);
    if (!material.textKnown) {
      material.text = side === "request" ? record.requestText() : record.responseText();
      material.textKnown = true;
    }
    return material.text;
  }

  /** Body text in lower case. */
  folded(record: QueryRecord, side: Side): string | undefined {
    const material = this.#of(side);
    if (material.folded === undefined) {
      const text = this.text(record, side);
      if (text !== undefined) material.folded = foldUnicode(text);
    }
    return material.folded;
  }

  /** The parsed JSON body; undefined when it is not JSON. */
  json(record: QueryRecord, side: Side): unknown {
    const material = this.#of(side);
    if (!material.jsonKnown) {
      material.jsonKnown = true;
      const text = this.text(record, side);
      material.json = text === undefined ? undefined : parseBodyJson(text);
    }
    return material.json;
  }

  #of(side: Side): SideMaterial {
    if (side === "request") return (this.#request ??= new SideMaterial());
    return (this.#response ??= new SideMaterial());
  }
}
