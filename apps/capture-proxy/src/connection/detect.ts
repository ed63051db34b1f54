import { beginsAsHttp2 } from "@headworks/http2";
import { readClientHello } from "./client-hello.ts";
import type { ClientHello } from "./client-hello.ts";

export type Detected =
  | { readonly protocol: "tls"; readonly hello: ClientHello }
  | { readonly protocol: "http1" }
  | { readonly protocol: "http2" }
  | { readonly protocol: "other" }
  /** Decide again when at least `needsBytes` from the start have arrived. */
  | { readonly protocol: "undecided"; readonly needsBytes: number };

/** Longest method token still considered HTTP. */
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
