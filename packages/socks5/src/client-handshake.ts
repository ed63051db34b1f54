import { Buffer } from "node:buffer";
import {
  COMMAND,
  credentialsBytes,
  greetingBytes,
  METHOD,
  readCredentialsReply,
  readMethodChoice,
  readReply,
  REPLY,
  requestBytes,
} from "./messages.ts";
import type { Socks5Credentials, Socks5Place, Socks5Problem } from "./messages.ts";

/** Why there is no tunnel. */
export type ClientFailure =
  /** The server's bytes are not SOCKS5. */
  | { readonly kind: "invalid"; readonly problem: Socks5Problem }
  /** The server accepts none of the offered methods, or chose another one. */
  | { readonly kind: "no-method"; readonly chosen: number }
  | { readonly kind: "wrong-credentials" }
  /** The server's reply code, which may be none of `REPLY`. */
  | { readonly kind: "reply"; readonly code: number };

/** The next step after received bytes. */
export interface ClientStep {
  /** To be sent first; may be empty. */
  readonly send: Uint8Array;
  readonly outcome:
    | { readonly kind: "going-on" }
    /** The tunnel is open; `rest` was received through it. */
    | { readonly kind: "open"; readonly bound: Socks5Place; readonly rest: Buffer }
    | { readonly kind: "failed"; readonly failure: ClientFailure };
}

const GOING_ON = { kind: "going-on" } as const;

/** The client's part of a CONNECT, without I/O (RFC 1928 and 1929). Bytes may be split anywhere. */
export class Socks5ClientHandshake {
  #phase: "method" | "credentials" | "reply" = "method";
  #kept: Buffer = Buffer.alloc(0);
  readonly #request: Uint8Array;
  readonly #credentials: Uint8Array | undefined;

  /** Throws RangeError for names and credentials that are too long for SOCKS5. */
  constructor(target: Socks5Place, credentials: Socks5Credentials | undefined) {
    this.#request = requestBytes(COMMAND.connect, target);
    this.#credentials = credentials && credentialsBytes(credentials);
  }

  /** The first bytes to send. The server may also accept a client without its credentials. */
  start(): Uint8Array {
    return greetingBytes(this.#credentials === undefined ? [METHOD.none] : [METHOD.none, METHOD.password]);
  }

  /** Must not be called again after an outcome other than `going-on`. */
  read(chunk: Buffer): ClientStep {
    let bytes = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    const send: Uint8Array[] = [];
    for (;;) {
      const move = this.#move(bytes);
      if (move.kind === "sent") {
        send.push(move.send);
        bytes = bytes.subarray(move.lengthBytes);
        continue;
      }
      if (move.kind === "partial") {
        // A copy: the caller's buffer is much larger than the few bytes that are kept.
        this.#kept = Buffer.from(bytes);
        return { send: Buffer.concat(send), outcome: GOING_ON };
      }
      return { send: Buffer.concat(send), outcome: move };
    }
  }

  #move(bytes: Buffer): Move {
    if (this.#phase === "method") return this.#methodChosen(bytes);
    return this.#phase === "credentials" ? this.#judged(bytes) : replied(bytes);
  }

  #methodChosen(bytes: Buffer): Move {
    const reading = readMethodChoice(bytes);
    if (reading.kind === "partial") return PARTIAL;
    if (reading.kind === "invalid") return failed(reading);
    const { value: chosen, lengthBytes } = reading;
    if (chosen === METHOD.none) return this.#sent("reply", this.#request, lengthBytes);
    if (chosen !== METHOD.password || this.#credentials === undefined) return failed({ kind: "no-method", chosen });
    return this.#sent("credentials", this.#credentials, lengthBytes);
  }

  #judged(bytes: Buffer): Move {
    const reading = readCredentialsReply(bytes);
    if (reading.kind === "partial") return PARTIAL;
    if (reading.kind === "invalid" || !reading.value) return failed({ kind: "wrong-credentials" });
    return this.#sent("reply", this.#request, reading.lengthBytes);
  }

  #sent(phase: "credentials" | "reply", send: Uint8Array, lengthBytes: number): Move {
    this.#phase = phase;
    return { kind: "sent", send, lengthBytes };
  }
}

type Move =
  | Exclude<ClientStep["outcome"], { kind: "going-on" }>
  | { readonly kind: "partial" }
  | { readonly kind: "sent"; readonly send: Uint8Array; readonly lengthBytes: number };

const PARTIAL = { kind: "partial" } as const;

function replied(bytes: Buffer): Move {
  // Some servers omit the address of a failure and close: the code is sufficient.
  const code = bytes[0] === 5 ? bytes[1] : undefined;
  if (code !== undefined && code !== REPLY.succeeded) return failed({ kind: "reply", code });
  const reading = readReply(bytes);
  if (reading.kind === "partial") return PARTIAL;
  if (reading.kind === "invalid") return failed(reading);
  const { host, port } = reading.value;
  return { kind: "open", bound: { host, port }, rest: bytes.subarray(reading.lengthBytes) };
}

function failed(failure: ClientFailure): { readonly kind: "failed"; readonly failure: ClientFailure } {
  return { kind: "failed", failure };
}
