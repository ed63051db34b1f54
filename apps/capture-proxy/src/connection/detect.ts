import { readClientHello } from "./client-hello.ts";
import type { ClientHello } from "./client-hello.ts";

/** What the first bytes inside a CONNECT tunnel are. */
export type Detected =
  | { readonly protocol: "tls"; readonly hello: ClientHello }
  | { readonly protocol: "http1" }
  | { readonly protocol: "http2" }
  | { readonly protocol: "other" }
  /** Another look is worth it when at least so many bytes, from the first, are there. */
  | { readonly protocol: "undecided"; readonly needsBytes: number };

const HTTP2_PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HTTP2_FIRST_BYTE = 0x50;
/** A method token is at most this long before we stop believing in HTTP. */
const MAX_METHOD_BYTES = 32;

/** Decides on the protocol from the first bytes; pure, and total: every input ends in an answer once it is long enough. */
export function detectProtocol(first: Buffer): Detected {
  if (first.length === 0) return oneMoreByte(first.length);
  if (first[0] === 0x16) {
    const hello = readClientHello(first);
    if (hello === "not-tls") return { protocol: "other" };
    return "needsBytes" in hello ? { protocol: "undecided", ...hello } : { protocol: "tls", hello };
  }
  const text = first.toString("latin1", 0, Math.max(HTTP2_PREFACE.length, MAX_METHOD_BYTES + 2));
  switch (beginsAsHttp2(first)) {
    case "yes":
      return { protocol: "http2" };
    case "maybe":
      return oneMoreByte(first.length);
    default:
      return detectHttp1(text);
  }
}

/** Whether a client begins with the preface of HTTP/2 (RFC 9113, 3.4); `maybe`: all bytes so far are of it. */
export function beginsAsHttp2(first: Buffer): "yes" | "no" | "maybe" {
  // Methods of HTTP/1.1 that begin so are told apart by their first byte, or by one of the next two.
  if (first[0] !== HTTP2_FIRST_BYTE) return "no";
  const text = first.toString("latin1", 0, HTTP2_PREFACE.length);
  if (!HTTP2_PREFACE.startsWith(text)) return "no";
  return text.length === HTTP2_PREFACE.length ? "yes" : "maybe";
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
