import { beginsAsHttp2 } from "@headworks/http2";

/** The contents of a TLS ClientHello, read without consuming it. */
export interface ClientHello {
  /** Lower-case SNI host name (RFC 6066); undefined if absent or not valid in a certificate. */
  readonly serverName: string | undefined;
  /** ALPN protocols (RFC 7301). */
  readonly protocols: readonly string[];
}

/** A valid prefix; parse again when at least `needsBytes` from the start have arrived. */
export interface HelloBeginning {
  readonly needsBytes: number;
}

type HelloResult = ClientHello | HelloBeginning | "not-tls";

const RECORD_HEADER_BYTES = 5;
const HANDSHAKE = 0x16;
const CLIENT_HELLO = 1;
const MESSAGE_HEADER_BYTES = 4;
const MAX_HELLO_BYTES = 65_536;
/** RFC 8446, 5.2; older versions allowed more. */
const MAX_RECORD_BYTES = 16_640;
/** At most 253 characters, no empty label. */
const HOST_NAME = /^(?!.{254})[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/**
 * Reads a ClientHello (RFC 8446, 4.1.2), possibly fragmented into several records. Bytes that look like TLS but break
 * its grammar are `not-tls`: they are relayed.
 */
export function readClientHello(bytes: Buffer): HelloResult {
  const handshake = handshakeBytes(bytes);
  if (handshake === "not-tls" || "needsBytes" in handshake) return handshake;
  const reader = new Cursor(handshake.body);
  if (!reader.skip(2 + 32) || !reader.skipVector(1) || !reader.skipVector(2) || !reader.skipVector(1)) return "not-tls";
  if (reader.remaining === 0) return { serverName: undefined, protocols: [] };
  const extensions = reader.vector(2);
  if (!extensions) return "not-tls";
  return readExtensions(extensions);
}

/** Reassembles the handshake message from its records. */
function handshakeBytes(bytes: Buffer): { body: Buffer } | HelloBeginning | "not-tls" {
  const pieces: Buffer[] = [];
  let total = 0;
  let messageBytes = MESSAGE_HEADER_BYTES;
  let at = 0;
  while (at < bytes.length) {
    const recordBytes = recordLength(bytes, at);
    if (recordBytes === "not-tls") return recordBytes;
    at += RECORD_HEADER_BYTES;
    if (recordBytes === undefined || at >= bytes.length) break;
    const piece = bytes.subarray(at, at + recordBytes);
    if (total === 0 && piece[0] !== CLIENT_HELLO) return "not-tls";
    const isHeaderNew = total < MESSAGE_HEADER_BYTES;
    pieces.push(piece);
    total += piece.length;
    at += piece.length;
    if (total < MESSAGE_HEADER_BYTES) continue;
    if (isHeaderNew) messageBytes += joined(pieces).readUIntBE(1, 3);
    if (messageBytes > MAX_HELLO_BYTES) return "not-tls";
    if (total >= messageBytes) return { body: joined(pieces).subarray(MESSAGE_HEADER_BYTES, messageBytes) };
  }
  // A client may split its message into thousands of records; parsing them again for every byte would take seconds.
  return { needsBytes: at + messageBytes - total };
}

function joined(pieces: readonly Buffer[]): Buffer {
  const [first] = pieces;
  return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces);
}

/** Undefined while the record header is incomplete. */
function recordLength(bytes: Buffer, at: number): number | undefined | "not-tls" {
  if (bytes[at] !== HANDSHAKE) return "not-tls";
  if (at + 1 < bytes.length && bytes[at + 1] !== 3) return "not-tls";
  if (at + RECORD_HEADER_BYTES > bytes.length) return undefined;
  const length = bytes.readUInt16BE(at + 3);
  return length === 0 || length > MAX_RECORD_BYTES ? "not-tls" : length;
}

function readExtensions(extensions: Cursor): ClientHello | "not-tls" {
  let serverName: string | undefined;
  let protocols: string[] = [];
  while (extensions.remaining > 0) {
    const type = extensions.number(2);
    const body = extensions.vector(2);
    if (type === undefined || !body) return "not-tls";
    if (type === 0) serverName = readServerName(body);
    if (type === 16) protocols = readProtocols(body);
  }
  return { serverName, protocols };
}

function readServerName(body: Cursor): string | undefined {
  const list = body.vector(2);
  while (list && list.remaining > 0) {
    const type = list.number(1);
    const name = list.vector(2);
    if (type === undefined || !name) return undefined;
    if (type === 0) {
      const text = name.text().toLowerCase().replace(/\.$/, "");
      return HOST_NAME.test(text) ? text : undefined;
    }
  }
  return undefined;
}

function readProtocols(body: Cursor): string[] {
  const protocols: string[] = [];
  const list = body.vector(2);
  while (list && list.remaining > 0) {
    const name = list.vector(1);
    if (!name) break;
    protocols.push(name.text());
  }
  return protocols;
}

/** Reads numbers and length-prefixed vectors; undefined instead of reading past the end. */
class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get remaining(): number {
    return this.#bytes.length - this.#at;
  }

  skip(count: number): boolean {
    if (this.remaining < count) return false;
    this.#at += count;
    return true;
  }

  number(width: number): number | undefined {
    if (this.remaining < width) return undefined;
    const value = this.#bytes.readUIntBE(this.#at, width);
    this.#at += width;
    return value;
  }

  vector(widthOfLength: number): Cursor | undefined {
    const length = this.number(widthOfLength);
    if (length === undefined || this.remaining < length) return undefined;
    const inner = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return new Cursor(inner);
  }

  skipVector(widthOfLength: number): boolean {
    return this.vector(widthOfLength) !== undefined;
  }

  text(): string {
    return this.#bytes.toString("latin1", this.#at);
  }
}

export type Detected =
  | { readonly protocol: "tls"; readonly hello: ClientHello }
  | { readonly protocol: "http1" }
  | { readonly protocol: "http2" }
  | { readonly protocol: "other" }
  /** Decide again when at least `needsBytes` from the start have arrived. */
  | { readonly protocol: "undecided"; readonly needsBytes: number };

/** Maximum length of a method token that is considered HTTP. */
const MAX_METHOD_BYTES = 32;
const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;

/** Detects the protocol from the first bytes. Pure and total: long enough input is always decided. */
export function detectProtocol(first: Buffer): Detected {
  if (first.length === 0) return oneMoreByte(first.length);
  if (first[0] === 0x16) {
    const hello = readClientHello(first);
    if (hello === "not-tls") return { protocol: "other" };
    return "needsBytes" in hello ? { protocol: "undecided", ...hello } : { protocol: "tls", hello };
  }
  const text = first.toString("latin1", 0, MAX_METHOD_BYTES + 2);
  switch (beginsAsHttp2(first)) {
    case "yes":
      return { protocol: "http2" };
    case "maybe":
      return oneMoreByte(first.length);
    default:
      return detectHttp1(text);
  }
}

/**
 * Whether the first bytes of an expected HTTP/1 connection are certainly not HTTP/1: they match no common request and
 * contain a line that does not end like a request line, or bytes invalid in one. One empty line may precede a request
 * line (RFC 9112, 2.2).
 */
export function isForeignToHttp1(received: Buffer): boolean {
  const first = received[0] === CR && received[1] === LF ? received.subarray(2) : received;
  if (first.length === 0 || detectProtocol(first).protocol !== "other") return false;
  const lineEnd = first.indexOf(LF);
  if (lineEnd === -1) return first.some((byte) => byte < 0x20 && byte !== CR && byte !== TAB);
  return !/ HTTP\/\d\.\d\r?$/.test(first.toString("latin1", 0, lineEnd));
}

function detectHttp1(text: string): Detected {
  const space = text.indexOf(" ");
  if (space === -1) {
    if (text.length > MAX_METHOD_BYTES || !/^[A-Z][A-Z0-9_-]*$/.test(text)) return { protocol: "other" };
    return oneMoreByte(text.length);
  }
  if (space > MAX_METHOD_BYTES || !/^[A-Z][A-Z0-9_-]*$/.test(text.slice(0, space))) return { protocol: "other" };
  if (space + 1 === text.length) return oneMoreByte(text.length);
  const target = text[space + 1];
  return target === "/" || target === "*" || target === "h" ? { protocol: "http1" } : { protocol: "other" };
}

function oneMoreByte(present: number): Detected {
  return { protocol: "undecided", needsBytes: present + 1 };
}
