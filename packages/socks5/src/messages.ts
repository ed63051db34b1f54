import type { Buffer } from "node:buffer";

/** Authentication methods (RFC 1928, 3). */
export const METHOD = { none: 0x00, password: 0x02, unacceptable: 0xff } as const;

/** Commands (RFC 1928, 4). */
export const COMMAND = { connect: 1, bind: 2, associate: 3 } as const;

/** Reply codes (RFC 1928, 6). */
export const REPLY = {
  succeeded: 0,
  generalFailure: 1,
  notAllowed: 2,
  networkUnreachable: 3,
  hostUnreachable: 4,
  refused: 5,
  expired: 6,
  commandNotSupported: 7,
  addressTypeNotSupported: 8,
} as const;

export type ReplyCode = (typeof REPLY)[keyof typeof REPLY];

const REPLY_TEXTS = [
  "succeeded",
  "general SOCKS server failure",
  "connection not allowed by ruleset",
  "network unreachable",
  "host unreachable",
  "connection refused",
  "TTL expired",
  "command not supported",
  "address type not supported",
];

/** RFC 1928's text of a reply code; unassigned codes are named as such. */
export function replyText(code: number): string {
  return REPLY_TEXTS[code] ?? "unassigned";
}

/** Destination or source: an address by its octets (4 or 16), or an unchecked name in Latin-1. */
export type Socks5Host =
  | { readonly kind: "ipv4" | "ipv6"; readonly octets: Uint8Array }
  | { readonly kind: "name"; readonly name: string };

export interface Socks5Address {
  readonly host: Socks5Host;
  readonly port: number;
}

/** Result of parsing the bytes so far. Nothing is consumed until a message is complete. */
export type Reading<T> =
  | { readonly kind: "whole"; readonly value: T; readonly lengthBytes: number }
  /** The message needs at least this many bytes in total. */
  | { readonly kind: "partial"; readonly needsBytes: number }
  | { readonly kind: "invalid"; readonly problem: Socks5Problem };

/** Why bytes are not SOCKS5. */
export type Socks5Problem = "version" | "no-methods" | "reserved" | "address-type" | "empty-name";

const VERSION = 5;
/** Version of the sub-negotiation of RFC 1929. */
const PASSWORD_VERSION = 1;
const ADDRESS = { ipv4: 1, name: 3, ipv6: 4 } as const;

function partial(needsBytes: number): Reading<never> {
  return { kind: "partial", needsBytes };
}

function invalid(problem: Socks5Problem): Reading<never> {
  return { kind: "invalid", problem };
}

/** A client's greeting: the methods it supports (RFC 1928, 3). */
export function readGreeting(bytes: Buffer): Reading<Uint8Array> {
  if (bytes.length > 0 && bytes[0] !== VERSION) return invalid("version");
  const count = bytes[1];
  if (count === undefined) return partial(2);
  if (count === 0) return invalid("no-methods");
  const lengthBytes = 2 + count;
  if (bytes.length < lengthBytes) return partial(lengthBytes);
  return { kind: "whole", value: bytes.subarray(2, lengthBytes), lengthBytes };
}

/** The method chosen by a server (RFC 1928, 3). */
export function readMethodChoice(bytes: Buffer): Reading<number> {
  if (bytes.length > 0 && bytes[0] !== VERSION) return invalid("version");
  const method = bytes[1];
  return method === undefined ? partial(2) : { kind: "whole", value: method, lengthBytes: 2 };
}

/** User name and password as sent. */
export interface Socks5Credentials {
  readonly username: Uint8Array;
  readonly password: Uint8Array;
}

/** A client's credentials (RFC 1929, 2), unverified; they may be empty. */
export function readCredentials(bytes: Buffer): Reading<Socks5Credentials> {
  if (bytes.length > 0 && bytes[0] !== PASSWORD_VERSION) return invalid("version");
  const usernameBytes = bytes[1];
  if (usernameBytes === undefined) return partial(2);
  const passwordAt = 2 + usernameBytes;
  const passwordBytes = bytes[passwordAt];
  if (passwordBytes === undefined) return partial(passwordAt + 1);
  const lengthBytes = passwordAt + 1 + passwordBytes;
  if (bytes.length < lengthBytes) return partial(lengthBytes);
  const value = { username: bytes.subarray(2, passwordAt), password: bytes.subarray(passwordAt + 1, lengthBytes) };
  return { kind: "whole", value, lengthBytes };
}

/** Whether a server accepted the credentials (RFC 1929, 2). Its version byte is ignored: some servers send 5. */
export function readCredentialsReply(bytes: Buffer): Reading<boolean> {
  const status = bytes[1];
  return status === undefined ? partial(2) : { kind: "whole", value: status === 0, lengthBytes: 2 };
}

/** A request: a command, which may be none of {@link COMMAND}, and the destination (RFC 1928, 4). */
export interface Socks5Request extends Socks5Address {
  readonly command: number;
}

export function readRequest(bytes: Buffer): Reading<Socks5Request> {
  return readAddressed(bytes, (command, address) => ({ command, ...address }));
}

/** A server's reply: its code, and the address it uses (RFC 1928, 6). */
export interface Socks5Reply extends Socks5Address {
  readonly code: number;
}

export function readReply(bytes: Buffer): Reading<Socks5Reply> {
  return readAddressed(bytes, (code, address) => ({ code, ...address }));
}

/** Requests and replies have the same format. */
function readAddressed<T>(bytes: Buffer, make: (second: number, address: Socks5Address) => T): Reading<T> {
  if (bytes.length > 0 && bytes[0] !== VERSION) return invalid("version");
  if (bytes.length > 2 && bytes[2] !== 0) return invalid("reserved");
  const [, second, , type] = bytes;
  if (second === undefined || type === undefined) return partial(4);
  const extent = addressExtent(bytes, type);
  if (extent === "unknown") return invalid("address-type");
  if (extent === "empty") return invalid("empty-name");
  if (extent === undefined) return partial(5);
  const [from, to] = extent;
  const lengthBytes = to + 2;
  if (bytes.length < lengthBytes) return partial(lengthBytes);
  const address = { host: hostFrom(type, bytes.subarray(from, to)), port: bytes.readUInt16BE(to) };
  return { kind: "whole", value: make(second, address), lengthBytes };
}

/** Start and end of the address; undefined while its length byte is missing. */
function addressExtent(bytes: Buffer, type: number): readonly [number, number] | "unknown" | "empty" | undefined {
  if (type === ADDRESS.ipv4) return [4, 8];
  if (type === ADDRESS.ipv6) return [4, 20];
  if (type !== ADDRESS.name) return "unknown";
  const nameBytes = bytes[4];
  if (nameBytes === 0) return "empty";
  return nameBytes === undefined ? undefined : [5, 5 + nameBytes];
}

function hostFrom(type: number, octets: Buffer): Socks5Host {
  if (type === ADDRESS.name) return { kind: "name", name: octets.toString("latin1") };
  return { kind: type === ADDRESS.ipv4 ? "ipv4" : "ipv6", octets };
}

export function greetingBytes(methods: readonly number[]): Uint8Array {
  return Uint8Array.of(VERSION, methods.length, ...methods);
}

/** A server's choice; {@link METHOD}.unacceptable ends the conversation. */
export function methodChoiceBytes(method: number): Uint8Array {
  return Uint8Array.of(VERSION, method);
}

/** Throws RangeError for user names and passwords of more than 255 bytes (RFC 1929). */
export function credentialsBytes({ username, password }: Socks5Credentials): Uint8Array {
  if (username.length > 255 || password.length > 255) {
    throw new RangeError("A SOCKS5 user name or password has at most 255 bytes");
  }
  return Uint8Array.of(PASSWORD_VERSION, username.length, ...username, password.length, ...password);
}

/** Anything but acceptance must be followed by closing the connection (RFC 1929, 2). */
export function credentialsReplyBytes(isAccepted: boolean): Uint8Array {
  return Uint8Array.of(PASSWORD_VERSION, isAccepted ? 0 : 1);
}

/** Throws RangeError for empty names and names of more than 255 bytes. */
export function requestBytes(command: number, address: Socks5Address): Uint8Array {
  return addressedBytes(command, address);
}

const UNSPECIFIED: Socks5Address = { host: { kind: "ipv4", octets: new Uint8Array(4) }, port: 0 };

/** A reply; the default address is 0.0.0.0:0, as in failures. */
export function replyBytes(code: ReplyCode, bound: Socks5Address = UNSPECIFIED): Uint8Array {
  return addressedBytes(code, bound);
}

function addressedBytes(second: number, { host, port }: Socks5Address): Uint8Array {
  return Uint8Array.of(VERSION, second, 0, ...hostBytes(host), port >> 8, port & 255);
}

function hostBytes(host: Socks5Host): readonly number[] {
  if (host.kind !== "name") return [ADDRESS[host.kind], ...host.octets];
  const { name } = host;
  if (name.length === 0 || name.length > 255) throw new RangeError("A SOCKS5 name has 1 to 255 bytes");
  return [ADDRESS.name, name.length, ...Array.from(name, (character) => character.charCodeAt(0) & 255)];
}
