import { isIP } from "node:net";
import { formatPlainAddress, parseAddress } from "@headworks/host-patterns";

/** Result of reading the PROXY header (versions 1 and 2) at the start of a connection. */
export type ProxyHeader =
  | { readonly state: "more" }
  /** `source` is undefined if the socket's peer is the client: LOCAL, UNKNOWN, families without addresses. */
  | { readonly state: "done"; readonly source: ProxySource | undefined; readonly rest: Buffer | undefined }
  | { readonly state: "malformed"; readonly why: string };

/** The client as the proxy in front saw it. */
export interface ProxySource {
  readonly address: string;
  readonly port: number;
}

const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
const V1_START = Buffer.from("PROXY ", "latin1");
/** The longest version 1 line, including its line end. */
const V1_MAX_BYTES = 107;
const V2_FIXED_BYTES = 16;
/** Size of the addresses per family; the records behind them are ignored. */
const V4_BYTES = 12;
const V6_BYTES = 36;
const UNIX_BYTES = 216;
const MORE: ProxyHeader = Object.freeze({ state: "more" });
const malformed = (why: string): ProxyHeader => ({ state: "malformed", why });

/**
 * Reads the header at the start of one connection, however it is split. Holds at most {@link V1_MAX_BYTES} bytes;
 * version 2 records behind the addresses are counted, not kept.
 */
export class ProxyHeaderReader {
  #held: Buffer = Buffer.alloc(0);
  /** Bytes of version 2 still to skip; undefined before its addresses are read. */
  #skipBytes: number | undefined;
  #source: ProxySource | undefined;

  /** Must not be called again after a result other than "more". */
  read(chunk: Buffer): ProxyHeader {
    if (this.#skipBytes !== undefined) return this.#skip(chunk);
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const start = this.#held;
    if (startsLike(start, SIGNATURE)) return start.length < V2_FIXED_BYTES ? this.#keep() : this.#readV2(start);
    if (startsLike(start, V1_START)) return this.#readV1(start);
    return malformed("the connection does not begin with a PROXY header");
  }

  #keep(): ProxyHeader {
    // Copied: the chunk may be a view of a much larger read.
    this.#held = Buffer.from(this.#held);
    return MORE;
  }

  #readV1(start: Buffer): ProxyHeader {
    const end = start.subarray(0, V1_MAX_BYTES).indexOf("\r\n", 0, "latin1");
    if (end === -1) return start.length < V1_MAX_BYTES ? this.#keep() : malformed("the PROXY line is too long");
    const rest = restOf(start, end + 2);
    const line = start.toString("latin1", 0, end);
    if (`${line} `.startsWith("PROXY UNKNOWN ")) return { state: "done", source: undefined, rest };
    const [, family, source = "", target = "", port = "", targetPort = "", surplus] = line.split(" ");
    const kind = family === "TCP4" ? 4 : family === "TCP6" ? 6 : 0;
    const isValid =
      kind !== 0 &&
      surplus === undefined &&
      isPlainAddress(source, kind) &&
      isPlainAddress(target, kind) &&
      isPort(port) &&
      isPort(targetPort);
    if (!isValid) return malformed("the PROXY line is not valid");
    return { state: "done", source: { address: plainText(source), port: Number(port) }, rest };
  }

  #readV2(start: Buffer): ProxyHeader {
    const [versionAndCommand = 0, familyAndKind = 0] = start.subarray(SIGNATURE.length);
    const command = versionAndCommand & 0x0f;
    if (versionAndCommand >> 4 !== 2 || command > 1) return malformed("the PROXY header has an unknown version");
    const lengthBytes = start.readUInt16BE(SIGNATURE.length + 2);
    const isLocal = command === 0;
    const addressBytes = isLocal ? 0 : addressBytesOf(familyAndKind);
    if (addressBytes === undefined) return malformed("the PROXY header has an unknown family");
    if (lengthBytes < addressBytes) return malformed("the PROXY header is too short for its addresses");
    const neededBytes = V2_FIXED_BYTES + (addressBytes === UNIX_BYTES ? 0 : addressBytes);
    if (start.length < neededBytes) return this.#keep();
    this.#source = sourceOf(start.subarray(V2_FIXED_BYTES), addressBytes);
    this.#skipBytes = V2_FIXED_BYTES + lengthBytes;
    this.#held = Buffer.alloc(0);
    return this.#skip(start);
  }

  #skip(chunk: Buffer): ProxyHeader {
    const left = this.#skipBytes ?? 0;
    if (chunk.length < left) {
      this.#skipBytes = left - chunk.length;
      return MORE;
    }
    return { state: "done", source: this.#source, rest: restOf(chunk, left) };
  }
}

/** Whether one is a prefix of the other. */
function startsLike(bytes: Buffer, wanted: Buffer): boolean {
  const common = Math.min(bytes.length, wanted.length);
  return bytes.compare(wanted, 0, common, 0, common) === 0;
}

function restOf(bytes: Buffer, from: number): Buffer | undefined {
  return from < bytes.length ? bytes.subarray(from) : undefined;
}

/** Without zones, and without the other spellings of IPv4 that only some programs accept. */
function isPlainAddress(text: string, kind: 4 | 6 | 0): boolean {
  return isIP(text) === kind && !text.includes("%");
}

function isPort(text: string): boolean {
  return /^(?:0|[1-9][0-9]{0,4})$/.test(text) && Number(text) <= 65_535;
}

/** Stream connections over IPv4, IPv6 and Unix sockets, or "unspecified"; datagrams never arrive as a connection. */
function addressBytesOf(familyAndKind: number): number | undefined {
  switch (familyAndKind) {
    case 0x00:
      return 0;
    case 0x11:
      return V4_BYTES;
    case 0x21:
      return V6_BYTES;
    case 0x31:
      return UNIX_BYTES;
    default:
      return undefined;
  }
}

function sourceOf(addresses: Buffer, addressBytes: number): ProxySource | undefined {
  if (addressBytes === V4_BYTES) {
    return { address: addresses.subarray(0, 4).join("."), port: addresses.readUInt16BE(8) };
  }
  if (addressBytes !== V6_BYTES) return undefined;
  return { address: v6Text(addresses.subarray(0, 16)), port: addresses.readUInt16BE(32) };
}

/** Version 1 allows any spelling of addresses. */
function plainText(address: string): string {
  const parsed = parseAddress(address);
  return parsed === undefined ? address : formatPlainAddress(parsed);
}

/** Canonical text (RFC 5952); an IPv4-mapped address becomes the IPv4 address. */
function v6Text(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16)).join(":");
  const canonical = new URL(`http://[${groups}]/`).hostname.slice(1, -1);
  const mapped = /^::ffff:[0-9a-f]+:[0-9a-f]+$/.test(canonical);
  return mapped ? bytes.subarray(12).join(".") : canonical;
}
