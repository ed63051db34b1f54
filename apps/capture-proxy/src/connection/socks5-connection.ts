import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import { parseHostPort } from "@headworks/host-patterns";
import { endAndLinger, NOT_IN_SET, type Timed } from "@headworks/sockets";
import {
  COMMAND,
  REPLY,
  replyBytes,
  type ReplyCode,
  replyText,
  type ServerRefusal,
  type Socks5Credentials,
  type Socks5Host,
  type Socks5Request,
  Socks5ServerHandshake,
} from "@headworks/socks5";
import type { ClientFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { Target, Verdict } from "#exchange/phases.ts";
import { whenDecided } from "#exchange/pipeline.ts";
import type { Dialled } from "#upstream/destination.ts";
import { addressOfOctets, socks5Host } from "#upstream/proxy-route.ts";
import { blocked } from "./client-failures.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { relay } from "./relay.ts";
import { type ConnectionHandle, TunnelExchange } from "./tunnel-exchange.ts";

/** The entry of a SOCKS5 CONNECT. Only its target and its outcome are known. */
class Socks5Exchange extends TunnelExchange {
  constructor(services: ProxyServices, client: ClientFacts, target: { readonly host: string; readonly port: number }) {
    super(services, client, { ...target, fields: [], version: "SOCKS5" });
  }

  protected override replyTo(failure: Failure): { readonly status: number; readonly text: string } {
    return { status: entryStatusOf(failure), text: entryText(replyOf(failure), failure) };
  }
}

/** Verifies a client's credentials; undefined: no authentication. */
export type Socks5Check = ((credentials: Socks5Credentials) => boolean) | undefined;

/** One client of the SOCKS5 listener: the handshake, then a blind tunnel to the target. */
export class Socks5Connection implements Timed, ConnectionHandle {
  setIndex = NOT_IN_SET;
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #services: ProxyServices;
  readonly #socket: Socket;
  readonly #facts: ClientFacts;
  readonly #handshake: Socks5ServerHandshake;
  #cancelDial: ((failure: Failure) => void) | undefined;
  #abortRelay: ((failure: Failure) => void) | undefined;

  constructor(services: ProxyServices, socket: Socket, facts: ClientFacts, check: Socks5Check) {
    this.#services = services;
    this.#socket = socket;
    this.#facts = facts;
    this.#handshake = new Socks5ServerHandshake(check);
    socket.on("error", ignoreError);
    socket.on("close", this.#onClose);
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    services.deadlines.add(this);
    this.deadlineMs = performance.now() + services.policy().headTimeoutMs;
    socket.resume();
  }

  drain(): void {
    if (this.#abortRelay === undefined && this.#cancelDial === undefined) this.#socket.destroy();
  }

  abort(failure: Failure): void {
    this.#abortRelay?.(failure);
    this.#cancelDial?.(failure);
    this.#socket.destroy();
  }

  /** The handshake timed out. */
  onDeadline(): void {
    this.#socket.destroy();
  }

  readonly #onData = (chunk: Buffer): void => {
    const { send, outcome } = this.#handshake.read(chunk);
    if (outcome.kind === "going-on") return this.#send(send);
    this.#handshakeDone();
    if (outcome.kind === "refused") return this.#refuse(outcome.refusal, send);
    this.#send(send);
    this.#onRequest(outcome.request, outcome.rest);
  };

  #send(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#socket.write(bytes);
  }

  /** The client disconnected before its request. */
  readonly #onEnd = (): void => void this.#socket.end();

  #handshakeDone(): void {
    this.#services.deadlines.delete(this);
    this.#socket.off("data", this.#onData);
    this.#socket.off("end", this.#onEnd);
    this.#socket.pause();
  }

  #refuse(refusal: ServerRefusal, last: Uint8Array): void {
    const { log } = this.#services;
    const client = this.#facts.address;
    if (refusal.kind === "invalid") log.debug({ client, problem: refusal.problem }, "Refused what is not SOCKS5");
    else log.warn({ client }, `Refused a SOCKS5 client ${REFUSED[refusal.kind]}`);
    endAndLinger(this.#socket, last);
  }

  #onRequest({ command, host, port }: Socks5Request, rest: Buffer): void {
    if (command !== COMMAND.connect) {
      const name =
        command === COMMAND.bind ? "BIND" : command === COMMAND.associate ? "UDP ASSOCIATE" : String(command);
      this.#services.log.debug({ client: this.#facts.address, command: name }, "Refused a SOCKS5 command");
      return endAndLinger(this.#socket, replyBytes(REPLY.commandNotSupported));
    }
    const requested = requestedTarget(host, port);
    const target: Target = { host: requested.host, port, client: this.#facts };
    if (requested.problem !== undefined) return this.#fail(this.#entry(target), requested.problem);
    const verdict = this.#services.pipeline.target(target);
    if (!(verdict instanceof Promise)) return this.#decided(target, verdict, rest);
    const decided = (later: Verdict): void => {
      if (!this.#socket.destroyed) this.#decided(target, later, rest);
    };
    whenDecided(verdict, decided, (error) => {
      this.#services.log.error({ err: error }, "A SOCKS5 connection failed");
      this.#socket.destroy();
    });
  }

  #entry(target: Target): Socks5Exchange {
    const entry = new Socks5Exchange(this.#services, this.#facts, target);
    entry.pace = target.pace;
    return entry;
  }

  #decided(target: Target, verdict: Verdict, rest: Buffer): void {
    const entry = this.#entry(target);
    if (verdict.kind === "continue") return this.#dial(target, entry, rest);
    const failure = blocked(target.host, verdict);
    if (verdict.kind === "abort" && verdict.closes === true) {
      entry.ended(failure);
      this.#socket.destroy();
    } else {
      this.#fail(entry, failure);
    }
  }

  #fail(entry: Socks5Exchange, failure: Failure): void {
    entry.ended(failure);
    this.#reject(replyOf(failure));
  }

  #reject(code: ReplyCode): void {
    if (!this.#socket.destroyed) endAndLinger(this.#socket, replyBytes(code));
  }

  #dial({ host, port }: Target, entry: Socks5Exchange, rest: Buffer): void {
    const destination = { host, port, secure: false, serverName: undefined, tunnel: true };
    const cancel = this.#services.dialer.dial(destination, entry.moments, {
      connected: (dialled) => {
        this.#cancelDial = undefined;
        this.#open(entry, dialled, rest);
      },
      failed: (failure) => {
        this.#cancelDial = undefined;
        this.#fail(entry, failure);
      },
    });
    const cancelDial = (failure: Failure): void => {
      this.#cancelDial = undefined;
      cancel();
      entry.ended(failure);
    };
    this.#cancelDial = cancelDial;
  }

  #open(entry: Socks5Exchange, dialled: Dialled, rest: Buffer): void {
    const { localAddress = "0.0.0.0", localPort = 0 } = dialled.socket;
    this.#socket.write(replyBytes(REPLY.succeeded, { host: boundHost(localAddress), port: localPort }));
    entry.opened(dialled.address);
    const { abort } = relay({
      client: this.#socket,
      upstream: dialled.socket,
      fromClient: rest.length > 0 ? rest : undefined,
      fromUpstream: undefined,
      counts: entry,
      services: this.#services,
      onEnd: (failure) => entry.ended(failure),
    });
    this.#abortRelay = abort;
  }

  readonly #onClose = (): void => {
    this.#services.deadlines.delete(this);
    const message = "The client closed the connection before the tunnel was open";
    this.#cancelDial?.({ stage: "client-read", side: "client", code: "CLIENT_ABORTED", message });
  };
}

function ignoreError(): void {
  // "close" follows and cleans up.
}

const REFUSED = {
  "no-method": "that does not offer to authenticate as it must",
  "wrong-credentials": "with wrong credentials",
} as const;

interface RequestedTarget {
  /** As used by entries, rules and the dialer. */
  readonly host: string;
  readonly problem: Failure | undefined;
}

/** The target; an invalid name is shown in a form that cannot be mistaken for a valid one. */
function requestedTarget(host: Socks5Host, port: number): RequestedTarget {
  const text = host.kind === "name" ? nameOf(host.name) : addressOfOctets(host.octets);
  if (text === undefined) {
    const shown = encodeURIComponent(Buffer.from((host as { name: string }).name, "latin1").toString("utf8"));
    const message = `${shown} is not a host name`;
    return { host: shown, problem: { stage: "resolve", side: "upstream", code: "DNS_NOT_FOUND", message } };
  }
  if (port !== 0) return { host: text, problem: undefined };
  const message = `${text}:0 is not a valid target: there is no port 0`;
  return { host: text, problem: { stage: "connect", side: "upstream", code: "UPSTREAM_UNREACHABLE", message } };
}

/** Normalizes a name. Some clients send addresses as names, with or without brackets. */
function nameOf(written: string): string | undefined {
  const text = Buffer.from(written, "latin1").toString("utf8");
  const isBareAddress = text.includes(":") && !text.startsWith("[");
  const parsed = parseHostPort(isBareAddress ? `[${text}]` : text);
  return "issue" in parsed || parsed.port !== undefined ? undefined : parsed.host;
}

/** The local address of the origin connection, without a zone. */
function boundHost(address: string): Socks5Host {
  const host = socks5Host(address);
  return host.kind === "name" ? { kind: "ipv4", octets: NO_ADDRESS } : host;
}

const NO_ADDRESS = new Uint8Array(4);

/** The reply code of RFC 1928 for a failure. */
export function replyOf(failure: Failure): ReplyCode {
  switch (failure.code) {
    case "DNS_NOT_FOUND":
    case "DNS_FAILED":
      return REPLY.hostUnreachable;
    case "UPSTREAM_REFUSED":
      return REPLY.refused;
    case "UPSTREAM_TIMEOUT":
    case "UPSTREAM_PROXY_TIMEOUT":
      return failure.stage === "resolve" ? REPLY.hostUnreachable : REPLY.expired;
    case "UPSTREAM_UNREACHABLE":
      return unreachable(failure.cause);
    case "UPSTREAM_PROXY_CONNECT":
      return REPLY.hostUnreachable;
    case "BLOCKED":
    case "NOT_ALLOWED":
    case "LOOP":
    case "UPSTREAM_PROXY_DENIED":
      return REPLY.notAllowed;
    default:
      return REPLY.generalFailure;
  }
}

/** Maps the system's error to a reply code; of several attempts the first counts. */
function unreachable(cause: unknown): ReplyCode {
  const { errors, code } = (cause ?? {}) as { errors?: readonly { code?: unknown }[]; code?: unknown };
  switch (errors?.[0]?.code ?? code) {
    case "ENETUNREACH":
    case "ENETDOWN":
      return REPLY.networkUnreachable;
    case "EHOSTUNREACH":
    case "EHOSTDOWN":
      return REPLY.hostUnreachable;
    default:
      return REPLY.generalFailure;
  }
}

/** The specification defines two entry statuses for SOCKS5. */
export function entryStatusOf(failure: Failure): 502 | 504 {
  return failure.code === "UPSTREAM_TIMEOUT" || failure.code === "UPSTREAM_PROXY_TIMEOUT" ? 504 : 502;
}

/** The entry's body: the reply code sent and the underlying error. */
export function entryText(reply: ReplyCode, failure: Failure): string {
  return `SOCKS5 reply ${reply} (${replyText(reply)})\n${failure.code}: ${failure.message}\n`;
}

/** Compares credentials in constant time, whatever their lengths: keyed digests are compared. */
export function credentialsCheck(username: string, password: string): (given: Socks5Credentials) => boolean {
  const key = randomBytes(32);
  const digest = (bytes: Uint8Array): Buffer => createHmac("sha256", key).update(bytes).digest();
  const rightUsername = digest(Buffer.from(username, "utf8"));
  const rightPassword = digest(Buffer.from(password, "utf8"));
  return (given) => {
    const isUsername = timingSafeEqual(digest(given.username), rightUsername);
    const isPassword = timingSafeEqual(digest(given.password), rightPassword);
    return isUsername && isPassword;
  };
}
