import type { Socket } from "node:net";
import type { SecureContext, TLSSocket } from "node:tls";
import { fieldValue, removeField } from "@headworks/http1";
import { type ByteSocket, NOT_IN_SET, type Timed } from "@headworks/sockets";
import type { ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import { type ClientFacts, type HttpVersion, type Moments, newMoments } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { Refusal, Target, Verdict } from "#exchange/phases.ts";
import { ALL_PROTOCOLS, type Destination, type Dialled, ONLY_HTTP1 } from "#upstream/destination.ts";
import { hasPassed, LOOP_DETECTED, viaOf } from "#upstream/origin-fields.ts";
import { blocked, failureResponse, internalFailure, invalidRequest } from "./client-failures.ts";
import { type ClientHello, detectProtocol } from "./detect.ts";
import { HttpConnection } from "./http-connection.ts";
import { Http2Connection } from "./http2-connection.ts";
import { whenDecided } from "#exchange/pipeline.ts";
import { MAGIC_HOST, type ProxyServices } from "./proxy-services.ts";
import { relay } from "./relay.ts";
import { parseConnectTarget, shownTarget, type TunnelBase } from "./request-plan.ts";
import { terminateTls } from "./client-tls.ts";
import { type ConnectHead, type ConnectionHandle, type TunnelClient, TunnelExchange } from "./tunnel-exchange.ts";

/** A client silent for this long may be waiting for a server-first protocol such as SMTP or SSH. */
const SILENCE_MS = 500;

/** A client silent for this long gets an error if the server cannot speak first. */
const PATIENCE_MS = 2000;

/**
 * Detects server-first protocols: if the client is silent, connects to its target and waits for bytes. If the server
 * speaks first, the tunnel is neither HTTP nor TLS. The owner cancels once the client speaks. A failure to connect is
 * reported too, since the client would wait forever, but only after `RELOAD_GAP_MS`: a response to a slow client's
 * request explains more than a closed tunnel.
 */
class ServerFirstProbe {
  readonly #startedMs = performance.now();
  readonly #outcome: ServerFirstOutcome;
  #timer: NodeJS.Timeout;
  #isCancelled = false;
  #cancelDial: (() => void) | undefined;
  #upstream: Socket | undefined;

  constructor(services: ProxyServices, target: SilentTarget, outcome: ServerFirstOutcome) {
    this.#outcome = outcome;
    this.#timer = setTimeout(() => {
      const verdict = services.pipeline.target(target);
      if (!(verdict instanceof Promise)) return this.#decided(services, target, verdict);
      void verdict.then((later) => this.#decided(services, target, later));
    }, SILENCE_MS);
  }

  #decided(services: ProxyServices, { host, port, via }: SilentTarget, verdict: Verdict): void {
    if (this.#isCancelled) return;
    if (verdict.kind !== "continue") return this.#outcome.refused(verdict);
    const moments = newMoments();
    const destination = { host, port, secure: false, serverName: undefined, tunnel: true, via };
    this.#cancelDial = services.dialer.dial(destination, moments, {
      connected: (dialled) => this.#listen(dialled, moments),
      failed: (failure) => {
        this.#cancelDial = undefined;
        const report = (): void => this.#outcome.failed(failure, moments, undefined);
        // A loop must end at once.
        if (failure.code === "LOOP") report();
        else this.#reportLater(report);
      },
    });
  }

  #reportLater(report: () => void): void {
    this.#timer = setTimeout(report, this.#startedMs + PATIENCE_MS - performance.now());
  }

  cancel(): void {
    this.#isCancelled = true;
    clearTimeout(this.#timer);
    this.#cancelDial?.();
    this.#upstream?.destroy();
    this.#upstream = undefined;
  }

  #listen(dialled: Dialled, moments: Moments): void {
    const { socket, address } = dialled;
    this.#cancelDial = undefined;
    this.#upstream = socket;
    const onReadable = (): void => {
      socket.off("readable", onReadable);
      this.#upstream = undefined;
      this.#outcome.serverSpoke(dialled, moments);
    };
    socket.on("error", (cause: NodeJS.ErrnoException) => {
      if (this.#upstream === undefined) return;
      const message = `${address} broke the connection before either side sent anything (${cause.code ?? cause.message})`;
      const failure: Failure = { stage: "receive", side: "upstream", code: "UPSTREAM_RESET", message, cause };
      this.#upstream = undefined;
      this.#reportLater(() => this.#outcome.failed(failure, moments, address));
    });
    // "readable" consumes neither bytes nor the end.
    socket.on("readable", onReadable);
  }
}

/** More than any ClientHello or request line needs. */
const MAX_SNIFF_BYTES = 65_536;

/** Longer User-Agent values are cut; they distinguish no further clients. */
const MAX_AGENT_CHARACTERS = 200;

/** Target and fields of a CONNECT request. */
interface TunnelTarget {
  readonly host: string;
  readonly port: number;
  readonly fields: string[];
  readonly version: HttpVersion;
  /** The Via fields. */
  readonly via: readonly string[] | undefined;
}

/**
 * Handles a tunnel after CONNECT: chooses interception or relay by the settings and the first bytes, and hands over
 * the socket or the HTTP/2 stream used as one.
 */
export class ConnectTunnel implements Timed, ConnectionHandle {
  setIndex = NOT_IN_SET;
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #services: ProxyServices;
  readonly #facts: ClientFacts;
  readonly #client: TunnelClient;
  readonly #socket: ByteSocket;
  readonly #target: TunnelTarget;
  #sniffed: Buffer | undefined;
  /** Bytes after `#sniffed`, not inspected yet because more are needed. */
  readonly #unread: Buffer[] = [];
  #unreadBytes = 0;
  #neededBytes = 0;
  #silence: ServerFirstProbe | undefined;
  #cancelDial: (() => void) | undefined;
  #next: ConnectionHandle | undefined;
  /** The bandwidth limit set by a slice. */
  #pace: ThrottledPace | undefined;

  /** Takes over the socket of a CONNECT request; `first` are bytes read behind its head. */
  static open(
    services: ProxyServices,
    facts: ClientFacts,
    client: TunnelClient,
    head: ConnectHead,
    first: Buffer | undefined,
  ): ConnectionHandle | undefined {
    client.socket.on("error", ignoreError);
    const fields = [...head.fields];
    removeField(fields, "proxy-authorization");
    const target = parseConnectTarget(head.target);
    if (typeof target === "string") {
      const failure = invalidRequest(target);
      const shown = shownTarget(head.target);
      if (shown !== undefined) {
        new TunnelExchange(services, facts, { ...shown, fields, version: client.version }).ended(failure);
      }
      respondWithFailure(client, failure, fields);
      return undefined;
    }
    const tunnel = { ...target, fields, version: client.version, via: viaOf(fields) };
    if (hasPassed(tunnel.via, services.dialer.viaPseudonym)) {
      new TunnelExchange(services, facts, tunnel).ended(LOOP_DETECTED);
      respondWithFailure(client, LOOP_DETECTED, fields);
      return undefined;
    }
    return new ConnectTunnel(services, facts, client, tunnel, first);
  }

  private constructor(
    services: ProxyServices,
    facts: ClientFacts,
    client: TunnelClient,
    target: TunnelTarget,
    first: Buffer | undefined,
  ) {
    this.#services = services;
    this.#facts = facts;
    this.#client = client;
    this.#socket = client.socket;
    this.#target = target;
    this.#sniffed = first;
    this.#socket.on("close", this.#onClose);
    const policy = services.policy();
    const mayIntercept = policy.interceptsTls && !policy.passesThrough(target.host);
    if (mayIntercept || target.host === MAGIC_HOST) this.#acceptAndSniff();
    else this.#withVerdict((verdict) => this.#relayOrRefuse(verdict));
  }

  drain(): void {
    if (this.#next) this.#next.drain();
    else this.#socket.destroy();
  }

  abort(failure: Failure): void {
    this.#next?.abort(failure);
    this.#socket.destroy();
  }

  /** The client opened a tunnel and never used it. */
  onDeadline(): void {
    const message = `The tunnel was not used for ${this.#services.policy().idleTimeoutMs} ms`;
    this.#unused({ stage: "client-read", side: "client", code: "CLIENT_TIMEOUT", message });
  }

  // Interception off: CONNECT succeeds once the origin is connected.

  #relayOrRefuse(verdict: Verdict): void {
    const entry = this.#entry();
    if (verdict.kind !== "continue") {
      entry.ended(blocked(this.#target.host, verdict));
      return this.#respondWithError(verdict);
    }
    this.#dialFor(entry, {
      connected: (dialled) => {
        this.#client.accept();
        this.#startRelay(entry, dialled);
      },
      failed: (failure) => respondWithFailure(this.#client, failure, this.#target.fields),
    });
  }

  #respondWithError(verdict: Refusal): void {
    if (verdict.kind === "abort") return void this.#socket.destroy();
    this.#client.refuse(verdict.response);
  }

  // Interception on: CONNECT succeeds at once, and the first bytes decide.

  #acceptAndSniff(): void {
    this.#client.accept();
    this.#services.deadlines.add(this);
    this.deadlineMs = performance.now() + this.#services.policy().idleTimeoutMs;
    if (this.#sniffed && this.#decide(this.#sniffed)) return;
    const { host, port, via } = this.#target;
    if (host !== MAGIC_HOST) {
      const target = { host, port, via, client: this.#facts };
      this.#silence = new ServerFirstProbe(this.#services, target, {
        serverSpoke: (dialled, moments) => this.#serverSpoke(dialled, moments),
        refused: (verdict) => this.#unused(blocked(host, verdict)),
        failed: (failure, moments, address) => this.#unused(failure, moments, address),
      });
    }
    this.#socket.on("data", this.#onSniff);
    this.#socket.on("end", this.#onSniffEnd);
    this.#socket.resume();
  }

  readonly #onSniff = (chunk: Buffer): void => {
    this.#silence?.cancel();
    this.#unread.push(chunk);
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes < this.#neededBytes) return;
    this.#decide(this.#joinUnread());
  };

  #joinUnread(): Buffer {
    const pieces = this.#sniffed ? [this.#sniffed, ...this.#unread.splice(0)] : this.#unread.splice(0);
    this.#unreadBytes = 0;
    this.#sniffed = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
    return this.#sniffed;
  }

  readonly #onSniffEnd = (): void => {
    if (this.#unreadBytes > 0) this.#joinUnread();
    if (this.#sniffed) this.#relaySniffed();
    else this.#socket.end();
  };

  /** True when the bytes sufficed and the decision was carried out. */
  #decide(first: Buffer): boolean {
    let detected = detectProtocol(first);
    if (detected.protocol === "undecided") {
      if (detected.needsBytes <= MAX_SNIFF_BYTES) {
        this.#neededBytes = detected.needsBytes - first.length;
        return false;
      }
      detected = { protocol: "other" };
    }
    if (detected.protocol === "tls" && !this.#passesThrough(detected.hello)) this.#interceptTls(detected.hello);
    else if (detected.protocol === "http1") this.#interceptPlain(first);
    else if (detected.protocol === "http2") this.#interceptPlainHttp2(first);
    else this.#relaySniffed();
    return true;
  }

  #passesThrough(hello: ClientHello): boolean {
    return hello.serverName !== undefined && this.#services.policy().passesThrough(hello.serverName);
  }

  /** Destination of requests inside the tunnel. */
  #base(scheme: "http" | "https", serverName: string | undefined): TunnelBase {
    const { host, port, via } = this.#target;
    const failed = (failure: Failure): void => {
      if (host !== MAGIC_HOST) this.#entry().ended(failure);
    };
    return { scheme, host, port, serverName, via, failed };
  }

  #interceptPlain(first: Buffer): void {
    this.#release();
    const base = this.#base("http", undefined);
    const connection = new HttpConnection(this.#services, this.#socket, this.#facts, base, undefined);
    this.#next = connection;
    connection.begin(first);
  }

  /** By prior knowledge (RFC 9113, 3.3). */
  #interceptPlainHttp2(first: Buffer): void {
    this.#release();
    this.#socket.unshift(first);
    this.#next = new Http2Connection(this.#services, this.#socket, this.#facts, {
      base: this.#base("http", undefined),
    });
  }

  #interceptTls(hello: ClientHello): void {
    this.#release();
    const services = this.#services;
    const { host } = this.#target;
    const { serverName } = hello;
    const secureContext = this.#leafContext(serverName ?? host);
    if (!secureContext) return;
    if (this.#sniffed) this.#socket.unshift(this.#sniffed);
    services.gauges.tlsHandshakesTotal += 1;
    terminateTls({
      socket: this.#socket,
      secureContext,
      serverName,
      host: serverName ?? host,
      facts: this.#facts,
      timeoutMs: services.policy().headTimeoutMs,
      deadlines: services.deadlines,
      protocols: services.policy().offersHttp2 ? ALL_PROTOCOLS : ONLY_HTTP1,
      done: (secure, facts) => this.#serveSecure(secure, facts, serverName),
      failed: (failure) => {
        services.gauges.tlsHandshakesFailed += 1;
        if (host !== MAGIC_HOST) this.#entry().ended(failure);
      },
    });
  }

  #serveSecure(secure: TLSSocket, facts: ClientFacts, serverName: string | undefined): void {
    const base = { ...this.#base("https", serverName), isHttpAgreed: secure.alpnProtocol !== false };
    if (secure.alpnProtocol === "h2") {
      const connection = new Http2Connection(this.#services, secure, facts, { base });
      this.#next = connection;
      return this.#watchForRefusal(secure, facts, connection);
    }
    const connection = new HttpConnection(this.#services, secure, facts, base, undefined);
    this.#next = connection;
    this.#watchForRefusal(secure, facts, connection);
    connection.begin(undefined);
  }

  #watchForRefusal(secure: TLSSocket, facts: ClientFacts, connection: { readonly hasReceived: boolean }): void {
    const { host, fields } = this.#target;
    if (host === MAGIC_HOST) return;
    const name = `${facts.sni ?? host} ${clientName(facts, fields)}`;
    this.#services.refusals.watch(name, secure, connection, () => {
      const message = `The client hung up right after TLS with ${host}; it probably does not trust the CA of this proxy`;
      this.#entry().ended({ stage: "tls", side: "client", code: "CLIENT_CERTIFICATE_REFUSED", message });
    });
  }

  #leafContext(name: string): SecureContext | undefined {
    try {
      return this.#services.leafContexts.get(name);
    } catch (error) {
      const message = `No certificate can be made for ${name}: ${error instanceof Error ? error.message : String(error)}`;
      this.#entry().ended({ stage: "tls", side: "internal", code: "INTERNAL", message, cause: error });
      this.#socket.destroy();
      return undefined;
    }
  }

  /** Neither TLS nor HTTP, or TLS in passthrough mode: relayed unchanged. */
  #relaySniffed(): void {
    this.#release();
    this.#withVerdict((verdict) => {
      if (verdict.kind !== "continue") return this.#unused(blocked(this.#target.host, verdict));
      const entry = this.#entry();
      this.#dialFor(entry, {
        connected: (dialled) => this.#startRelay(entry, dialled),
        failed: () => this.#socket.destroy(),
      });
    });
  }

  #serverSpoke(dialled: Dialled, moments: Moments): void {
    this.#release();
    this.#withVerdict((verdict) => {
      if (verdict.kind === "continue") return this.#startRelay(this.#entry(moments), dialled);
      dialled.socket.destroy();
      this.#unused(blocked(this.#target.host, verdict), moments);
    });
  }

  /**
   * Ends a tunnel that carried nothing. CONNECT has already succeeded and the inner protocol is not HTTP, so the
   * client cannot receive a reason.
   */
  #unused(failure: Failure, moments?: Moments, address?: string): void {
    if (this.#target.host !== MAGIC_HOST) {
      const entry = this.#entry(moments);
      if (address !== undefined) entry.opened(address);
      entry.ended(failure);
    }
    this.#socket.destroy();
  }

  // Steps

  #withVerdict(decided: (verdict: Verdict) => void): void {
    const { host, port } = this.#target;
    const target: Target = { host, port, client: this.#facts };
    const verdict = this.#services.pipeline.target(target);
    const proceed = (final: Verdict): void => {
      this.#pace = target.pace;
      decided(final);
    };
    if (!(verdict instanceof Promise)) return proceed(verdict);
    const proceedLater = (later: Verdict): void => {
      if (!this.#socket.destroyed) proceed(later);
    };
    whenDecided(verdict, proceedLater, (error) => {
      this.#services.log.error({ err: error }, "A tunnel failed");
      this.abort(internalFailure(error));
    });
  }

  #dialFor(
    entry: TunnelExchange,
    result: { connected: (dialled: Dialled) => void; failed: (failure: Failure) => void },
  ): void {
    const { host, port, via } = this.#target;
    const cancel = this.#services.dialer.dial(
      { host, port, secure: false, serverName: undefined, tunnel: true, via },
      entry.moments,
      {
        connected: (dialled) => {
          this.#cancelDial = undefined;
          result.connected(dialled);
        },
        failed: (failure) => {
          this.#cancelDial = undefined;
          entry.ended(failure);
          result.failed(failure);
        },
      },
    );
    const cancelDial = (): void => {
      cancel();
      const message = "The client closed the connection before the tunnel was open";
      entry.ended({ stage: "client-read", side: "client", code: "CLIENT_ABORTED", message });
    };
    this.#cancelDial = cancelDial;
  }

  #startRelay(entry: TunnelExchange, dialled: Dialled): void {
    const first = this.#sniffed;
    this.#sniffed = undefined;
    if (this.#socket.destroyed) {
      dialled.socket.destroy();
      entry.ended({ stage: "client-read", side: "client", code: "CLIENT_ABORTED", message: "The client went away" });
      return;
    }
    this.#release();
    entry.opened(dialled.address);
    const running = relay({
      client: this.#socket,
      upstream: dialled.socket,
      fromClient: first,
      fromUpstream: undefined,
      counts: entry,
      services: this.#services,
      onEnd: (failure) => entry.ended(failure),
    });
    this.#next = { drain: () => undefined, abort: running.abort };
  }

  #entry(moments?: Moments): TunnelExchange {
    const entry = new TunnelExchange(this.#services, this.#facts, this.#target, moments);
    entry.pace = this.#pace;
    return entry;
  }

  /** Removes all listeners from the socket. */
  #release(): void {
    this.#silence?.cancel();
    this.#services.deadlines.delete(this);
    this.#socket.off("data", this.#onSniff);
    this.#socket.off("end", this.#onSniffEnd);
    this.#socket.pause();
  }

  readonly #onClose = (): void => {
    this.#release();
    this.#cancelDial?.();
  };
}

function ignoreError(): void {
  // "close" follows and cleans up.
}

/** Programs on one machine differ in User-Agent and in the CAs they trust. */
function clientName({ address = "" }: ClientFacts, fields: readonly string[]): string {
  const agent = fieldValue(fields, "user-agent") ?? "";
  return `${address.slice(0, address.lastIndexOf(":"))} ${agent.slice(0, MAX_AGENT_CHARACTERS)}`;
}

function respondWithFailure(client: TunnelClient, failure: Failure, fields: readonly string[]): void {
  if (client.socket.destroyed) return;
  client.refuse(failureResponse(failure, fieldValue(fields, "accept") === undefined ? [] : fields));
}

/** Outcome for a silent client; at most one method is called. */
interface ServerFirstOutcome {
  /** The server sent bytes or ended its side; both are still unread. */
  serverSpoke(dialled: Dialled, moments: Moments): void;
  /** Rules block the target; it was not dialled. */
  refused(verdict: Refusal): void;
  /** The target is unreachable or, if `address` is set, closed the connection without sending anything. */
  failed(failure: Failure, moments: Moments, address: string | undefined): void;
}

/** The target of a CONNECT and its Via fields. */
type SilentTarget = Target & Pick<Destination, "via">;
