import { Buffer } from "node:buffer";
import {
  COMMAND,
  credentialsBytes,
  credentialsReplyBytes,
  greetingBytes,
  METHOD,
  methodChoiceBytes,
  readCredentials,
  readCredentialsReply,
  readGreeting,
  type Reading,
  readMethodChoice,
  readReply,
  readRequest,
  REPLY,
  replyBytes,
  requestBytes,
  type Socks5Credentials,
  type Socks5Address,
  type Socks5Problem,
  type Socks5Request,
} from "./messages.ts";

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
    | { readonly kind: "open"; readonly bound: Socks5Address; readonly rest: Buffer }
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
  constructor(target: Socks5Address, credentials: Socks5Credentials | undefined) {
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

/** Why a server refused a client before its request. */
export type ServerRefusal =
  /** The bytes are not SOCKS5. */
  | { readonly kind: "invalid"; readonly problem: Socks5Problem }
  /** The client offered no acceptable method. */
  | { readonly kind: "no-method" }
  | { readonly kind: "wrong-credentials" };

/** The next step after received bytes. */
export interface ServerStep {
  /** To be sent first; may be empty. */
  readonly send: Uint8Array;
  readonly outcome:
    | { readonly kind: "going-on" }
    /** The caller replies with {@link replyBytes}. `rest` was read behind the request and belongs to the tunnel. */
    | { readonly kind: "request"; readonly request: Socks5Request; readonly rest: Buffer }
    /** Close the connection once `send` is sent. */
    | { readonly kind: "refused"; readonly refusal: ServerRefusal };
}

const NOTHING = new Uint8Array(0);

/**
 * The server's part of the handshake up to the request, without I/O (RFC 1928 and 1929). Bytes may be split anywhere
 * and arrive early; at most one message (513 bytes) is kept.
 */
export class Socks5ServerHandshake {
  #phase: "greeting" | "credentials" | "request" = "greeting";
  #kept: Buffer = Buffer.alloc(0);
  readonly #accepts: ((credentials: Socks5Credentials) => boolean) | undefined;

  /** @param accepts verifies credentials; without it clients need none, even if they offer some. */
  constructor(accepts: ((credentials: Socks5Credentials) => boolean) | undefined) {
    this.#accepts = accepts;
  }

  /** Must not be called again after an outcome other than `going-on`. */
  read(chunk: Buffer): ServerStep {
    let bytes = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    const sent: Uint8Array[] = [];
    const step = (outcome: ServerStep["outcome"]): ServerStep => ({ send: joined(sent), outcome });
    for (;;) {
      if (this.#phase === "request") return step(this.#request(bytes, sent));
      const response = this.#phase === "greeting" ? this.#greeting(bytes) : this.#credentials(bytes);
      if (response === undefined) return step(this.#keep(bytes));
      if (response.send !== undefined) sent.push(response.send);
      if (response.refusal !== undefined) return step({ kind: "refused", refusal: response.refusal });
      bytes = bytes.subarray(response.lengthBytes);
    }
  }

  #keep(bytes: Buffer): typeof GOING_ON {
    // A copy: the caller's buffer is much larger than the few bytes that are kept.
    this.#kept = Buffer.from(bytes);
    return GOING_ON;
  }

  #greeting(bytes: Buffer): Response | undefined {
    const reading = readGreeting(bytes);
    if (reading.kind !== "whole") return unread(reading);
    const method = this.#accepts === undefined ? METHOD.none : METHOD.password;
    if (!reading.value.includes(method)) {
      return { lengthBytes: 0, send: methodChoiceBytes(METHOD.unacceptable), refusal: { kind: "no-method" } };
    }
    this.#phase = method === METHOD.none ? "request" : "credentials";
    return { lengthBytes: reading.lengthBytes, send: methodChoiceBytes(method), refusal: undefined };
  }

  #credentials(bytes: Buffer): Response | undefined {
    const reading = readCredentials(bytes);
    if (reading.kind !== "whole") return unread(reading);
    const isAccepted = this.#accepts?.(reading.value) ?? true;
    this.#phase = "request";
    return {
      lengthBytes: reading.lengthBytes,
      send: credentialsReplyBytes(isAccepted),
      refusal: isAccepted ? undefined : { kind: "wrong-credentials" },
    };
  }

  #request(bytes: Buffer, sent: Uint8Array[]): ServerStep["outcome"] {
    const reading = readRequest(bytes);
    if (reading.kind === "partial") return this.#keep(bytes);
    if (reading.kind === "invalid") {
      const { problem } = reading;
      sent.push(replyBytes(problem === "address-type" ? REPLY.addressTypeNotSupported : REPLY.generalFailure));
      return { kind: "refused", refusal: { kind: "invalid", problem } };
    }
    this.#kept = Buffer.alloc(0);
    return { kind: "request", request: reading.value, rest: bytes.subarray(reading.lengthBytes) };
  }
}

interface Response {
  readonly lengthBytes: number;
  readonly send: Uint8Array | undefined;
  readonly refusal: ServerRefusal | undefined;
}

/** The step for bytes that are incomplete or malformed. */
function unread(reading: Exclude<Reading<unknown>, { kind: "whole" }>): Response | undefined {
  if (reading.kind === "partial") return undefined;
  return { lengthBytes: 0, send: undefined, refusal: { kind: "invalid", problem: reading.problem } };
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  if (pieces.length < 2) return pieces[0] ?? NOTHING;
  return Buffer.concat(pieces);
}
