// Tested by detect.test.ts
/** What a TLS client asks for, read from its first record without answering. */
export interface ClientHello {
  /** Lower-case server name (RFC 6066), undefined when the client sent none. */
  readonly serverName: string | undefined;
  /** Protocols offered by ALPN (RFC 7301), empty when none. */
  readonly protocols: readonly string[];
}

/** `need-more`: the bytes so far are a correct beginning. `not-tls`: they are something else. */
export type HelloResult = ClientHello | "need-more" | "not-tls";

const RECORD_HEADER_BYTES = 5;
const HANDSHAKE = 0x16;
const CLIENT_HELLO = 1;
const MAX_HELLO_BYTES = 65_536;

/**
 * Reads a ClientHello (RFC 8446, 4.1.2), which may be spread over several records. Bytes that claim to be TLS but
 * break its grammar are `not-tls`: they are relayed, not answered.
 */
export function readClientHello(bytes: Buffer): HelloResult {
  const handshake = handshakeBytes(bytes);
  if (typeof handshake === "string") return handshake;
  const reader = new Cursor(handshake.body);
  if (!reader.skip(2 + 32) || !reader.skipVector(1) || !reader.skipVector(2) || !reader.skipVector(1)) return "not-tls";
  if (reader.remaining === 0) return { serverName: undefined, protocols: [] };
  const extensions = reader.vector(2);
  if (!extensions) return "not-tls";
  return readExtensions(extensions);
}

/** Joins the handshake message from the records that carry it. */
function handshakeBytes(bytes: Buffer): { body: Buffer } | "need-more" | "not-tls" {
  const pieces: Buffer[] = [];
  let total = 0;
  let at = 0;
  for (;;) {
    if (at < bytes.length && bytes[at] !== HANDSHAKE) return "not-tls";
    if (at + 1 < bytes.length && bytes[at + 1] !== 3) return "not-tls";
    if (at + RECORD_HEADER_BYTES > bytes.length) return "need-more";
    const recordBytes = bytes.readUInt16BE(at + 3);
    if (recordBytes === 0 || recordBytes > 16_640) return "not-tls";
    const end = at + RECORD_HEADER_BYTES + recordBytes;
    const piece = bytes.subarray(at + RECORD_HEADER_BYTES, Math.min(end, bytes.length));
    pieces.push(piece);
    total += piece.length;
    const joined = pieces.length === 1 ? piece : Buffer.concat(pieces);
    if (joined.length > 0 && joined[0] !== CLIENT_HELLO) return "not-tls";
    if (joined.length >= 4) {
      const size = joined.readUIntBE(1, 3);
      if (size > MAX_HELLO_BYTES) return "not-tls";
      if (joined.length >= 4 + size) return { body: joined.subarray(4, 4 + size) };
    }
    if (end > bytes.length || total > MAX_HELLO_BYTES) return "need-more";
    at = end;
    if (at === bytes.length) return "need-more";
  }
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
      return /^[a-z0-9_.-]{1,253}$/.test(text) ? text : undefined;
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

/** Reads numbers and length-prefixed vectors; gives undefined instead of reading past the end. */
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
