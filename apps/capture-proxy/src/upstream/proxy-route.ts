import {
  compileHostPatterns,
  formatAddress,
  type HostMatcher,
  hostPortText,
  parseAddress,
} from "@headworks/host-patterns";
import { type Http1Error, requestHeadText, type ResponseHead, ResponseReader } from "@headworks/http1";
import { type ClientFailure, REPLY, replyText, Socks5ClientHandshake, type Socks5Host } from "@headworks/socks5";
import type { Failure } from "#exchange/failure.ts";
import { ourMembers, viaMember } from "./origin-fields.ts";
import {
  basicCredentials,
  capitalized,
  type ProxyAddress,
  type ProxyCredentials,
  proxyFailure,
  proxyText,
  quotable,
} from "./proxy-failure.ts";

/** Encodes a host for SOCKS5: addresses as octets, everything else as a name. IPv6 zones are dropped. */
export function socks5Host(host: string): Socks5Host {
  const address = parseAddress(host);
  if (address === undefined) return { kind: "name", name: host };
  const lengthBytes = address.version === 4 ? 4 : 16;
  const octets = new Uint8Array(lengthBytes);
  for (let at = lengthBytes - 1, rest = address.value; at >= 0; at -= 1, rest >>= 8n) octets[at] = Number(rest & 255n);
  return { kind: address.version === 4 ? "ipv4" : "ipv6", octets };
}

/** The text of an address received over SOCKS5: dotted IPv4, or RFC 5952. */
export function addressOfOctets(octets: Uint8Array): string {
  let value = octets.length === 4 ? 0xffffn : 0n;
  for (const octet of octets) value = (value << 8n) | BigInt(octet);
  return formatAddress({ version: octets.length === 4 ? 4 : 6, value });
}

/** The next step after bytes from the upstream proxy. */
export type HandshakeStep =
  | { readonly kind: "going-on"; readonly send: Uint8Array | undefined }
  /** The tunnel is open; `rest` was received through it. */
  | { readonly kind: "open"; readonly rest: Buffer }
  | { readonly kind: "failed"; readonly failure: Failure };

/** Opens a tunnel through an upstream proxy, without I/O. */
export interface TunnelHandshake {
  /** The first bytes to send. */
  start(): Uint8Array;
  /** Processes received bytes. Not called again after an outcome other than `going-on`. */
  read(chunk: Buffer): HandshakeStep;
}

export interface ConnectFields {
  readonly authorization: string | undefined;
  /** Values of Via fields. */
  readonly via: readonly string[];
}

/**
 * CONNECT to an HTTP proxy (RFC 9110, 9.3.6). The codec parses the response head with its limits; the body of an error
 * is not read, since the connection ends with it.
 */
export class HttpConnect implements TunnelHandshake {
  readonly #proxy: ProxyAddress;
  readonly #hostPort: string;
  readonly #fields: ConnectFields;
  readonly #reader: ResponseReader;
  #head: ResponseHead | undefined;
  #error: Http1Error | undefined;

  constructor(proxy: ProxyAddress, target: { readonly host: string; readonly port: number }, fields: ConnectFields) {
    this.#proxy = proxy;
    this.#hostPort = hostPortText(target.host, target.port);
    this.#fields = fields;
    this.#reader = new ResponseReader(
      {
        onInformational: () => undefined,
        onHead: (head) => {
          this.#head = head;
          // The following bytes belong to the tunnel, or to an error body that is not read.
          this.#reader.pause();
        },
        onData: () => undefined,
        onTrailers: () => undefined,
        onEnd: () => undefined,
        onError: (error) => {
          this.#error = error;
        },
      },
      { lenient: true },
    );
    this.#reader.expect("CONNECT");
  }

  start(): Uint8Array {
    const { authorization, via } = this.#fields;
    const fields = ["Host", this.#hostPort];
    if (authorization !== undefined) fields.push("Proxy-Authorization", authorization);
    for (const value of via) fields.push("Via", value);
    return Buffer.from(requestHeadText("CONNECT", this.#hostPort, fields), "latin1");
  }

  read(chunk: Buffer): HandshakeStep {
    const at = this.#reader.read(chunk);
    if (this.#error) return { kind: "failed", failure: this.#garbage(this.#error) };
    if (this.#head === undefined) return { kind: "going-on", send: undefined };
    const { status } = this.#head;
    if (status >= 200 && status < 300) return { kind: "open", rest: chunk.subarray(at) };
    return { kind: "failed", failure: this.#refusal(this.#head) };
  }

  #garbage(error: Http1Error): Failure {
    const message = `The response of ${proxyText(this.#proxy)} to CONNECT is not valid HTTP: ${error.message}`;
    return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_PROTOCOL", message, error);
  }

  #refusal({ status, reason: phrase }: ResponseHead): Failure {
    const reply = quotable(`${status} ${phrase}`);
    // Some proxies use 401 for 407; only the proxy itself can have responded to CONNECT.
    if (status === 407 || status === 401) {
      return unauthorizedProxy(this.#proxy, this.#fields.authorization !== undefined);
    }
    if (status === 508) {
      const message = `Through ${proxyText(this.#proxy)}, the route to ${this.#hostPort} is a loop (${reply})`;
      return { stage: "proxy-handshake", side: "upstream", code: "LOOP", message };
    }
    const reason = status === 504 ? "TIMEOUT" : status >= 500 ? "CONNECT" : "DENIED";
    return tunnelFailure(this.#proxy, this.#hostPort, reason, reply);
  }
}

/** The proxy requires credentials or rejected the given ones. */
export function unauthorizedProxy(proxy: ProxyAddress, hadCredentials: boolean): Failure {
  const what = hadCredentials
    ? "does not accept the configured credentials"
    : "requires credentials; none are configured";
  const message = `${capitalized(proxyText(proxy))} ${what}`;
  return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_AUTH", message);
}

const TUNNEL_PROBLEMS = {
  DENIED: "refuses a tunnel to",
  TIMEOUT: "timed out connecting to",
  CONNECT: "could not connect to",
};

/** The proxy did not open the tunnel; `reply` is its explanation. */
function tunnelFailure(
  proxy: ProxyAddress,
  hostPort: string,
  reason: keyof typeof TUNNEL_PROBLEMS,
  reply: string,
): Failure {
  const message = `${capitalized(proxyText(proxy))} ${TUNNEL_PROBLEMS[reason]} ${hostPort} (${reply})`;
  return proxyFailure("proxy-handshake", `UPSTREAM_PROXY_${reason}`, message);
}

/** CONNECT to a SOCKS5 proxy. The proxy resolves names, so that no DNS query leaves this machine. */
class Socks5Connect implements TunnelHandshake {
  readonly #proxy: ProxyAddress;
  readonly #hostPort: string;
  readonly #hasCredentials: boolean;
  readonly #handshake: Socks5ClientHandshake;

  /** Throws RangeError for names and credentials too long for SOCKS5. */
  constructor(
    proxy: ProxyAddress,
    { host, port }: { readonly host: string; readonly port: number },
    credentials: ProxyCredentials | undefined,
  ) {
    this.#proxy = proxy;
    this.#hostPort = hostPortText(host, port);
    this.#hasCredentials = credentials !== undefined;
    this.#handshake = new Socks5ClientHandshake(
      { host: socks5Host(host), port },
      credentials && {
        username: Buffer.from(credentials.username, "utf8"),
        password: Buffer.from(credentials.password, "utf8"),
      },
    );
  }

  start(): Uint8Array {
    return this.#handshake.start();
  }

  read(chunk: Buffer): HandshakeStep {
    const { send, outcome } = this.#handshake.read(chunk);
    switch (outcome.kind) {
      case "open":
        return { kind: "open", rest: outcome.rest };
      case "failed":
        return { kind: "failed", failure: this.#failure(outcome.failure) };
      default:
        return { kind: "going-on", send };
    }
  }

  #failure(failure: ClientFailure): Failure {
    switch (failure.kind) {
      case "invalid": {
        const message = `The reply of ${proxyText(this.#proxy)} is not SOCKS5 (${failure.problem})`;
        return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_PROTOCOL", message);
      }
      case "no-method":
        return this.#noMethod(failure.chosen);
      case "wrong-credentials":
        return unauthorizedProxy(this.#proxy, true);
      default:
        return this.#refusal(failure.code);
    }
  }

  #noMethod(chosen: number): Failure {
    const isProtocolError = chosen !== 0xff && chosen !== 2;
    if (!isProtocolError) return unauthorizedProxy(this.#proxy, this.#hasCredentials);
    const message = `${capitalized(proxyText(this.#proxy))} wants to authenticate by method ${chosen}, which was not offered`;
    return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_PROTOCOL", message);
  }

  #refusal(code: number): Failure {
    const reason = code === REPLY.notAllowed ? "DENIED" : code === REPLY.expired ? "TIMEOUT" : "CONNECT";
    return tunnelFailure(this.#proxy, this.#hostPort, reason, `reply ${code}: ${replyText(code)}`);
  }
}

/** How to write requests for a forwarding proxy: absolute targets and its credentials. */
export interface Forwarding {
  readonly proxy: ProxyAddress;
  readonly authorization: string | undefined;
  /** Value of Via: the proxies passed so far, and this process. */
  readonly via: string;
}

/** How to reach a destination. */
export type Route =
  | { readonly kind: "direct" }
  | { readonly kind: "forward"; readonly forwarding: Forwarding }
  | { readonly kind: "tunnel"; readonly proxy: ProxyAddress; readonly handshake: TunnelHandshake }
  /** The proxy cannot reach it, and bypassing the proxy is not allowed. */
  | { readonly kind: "refused"; readonly failure: Failure };

export interface RouteTarget {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** The connection carries a tunnel or an upgraded protocol. */
  readonly tunnel?: boolean;
  /** Via fields of the client's CONNECT. */
  readonly via?: readonly string[] | undefined;
}

/** Settings that may change at run time. */
export interface ProxyChoices {
  readonly credentials: ProxyCredentials | undefined;
  /** Hosts reached without the proxy. */
  readonly bypass: readonly string[];
}

const DIRECT: Route = { kind: "direct" };

/** Selects the route of each destination. */
export class ProxyRoutes {
  readonly #proxy: ProxyAddress | undefined;
  #credentials: ProxyCredentials | undefined;
  #bypass: HostMatcher;

  /** @param proxy  undefined: all connections are direct */
  constructor(proxy: ProxyAddress | undefined, choices: ProxyChoices) {
    this.#proxy = proxy;
    this.#credentials = choices.credentials;
    this.#bypass = compileHostPatterns(choices.bypass, "bypass");
  }

  /** Applies to connections opened from now on. */
  update(choices: ProxyChoices): void {
    this.#credentials = choices.credentials;
    this.#bypass = compileHostPatterns(choices.bypass, "bypass");
  }

  /** @param pseudonym  this process's name for proxies on the route */
  route(target: RouteTarget, viaPseudonym: string): Route {
    const proxy = this.#proxy;
    if (proxy === undefined || this.#bypass.matches(target.host)) return DIRECT;
    const isForwardable = !target.secure && target.tunnel !== true;
    if (proxy.protocol === "socks5") return this.#bySocks5(proxy, target);
    const authorization = this.#authorization();
    const { via: passed = [] } = target;
    if (isForwardable) {
      const via = [...ourMembers(passed), viaMember(viaPseudonym)].join(", ");
      return { kind: "forward", forwarding: { proxy, authorization, via } };
    }
    if (proxy.protocol === "https") return { kind: "refused", failure: noTunnel(proxy, target) };
    const via = [...passed, viaMember(viaPseudonym)];
    return { kind: "tunnel", proxy, handshake: new HttpConnect(proxy, target, { authorization, via }) };
  }

  #authorization(): string | undefined {
    return this.#credentials && basicCredentials(this.#credentials);
  }

  #bySocks5(proxy: ProxyAddress, target: RouteTarget): Route {
    try {
      return { kind: "tunnel", proxy, handshake: new Socks5Connect(proxy, target, this.#credentials) };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      const message = `${capitalized(proxyText(proxy))} cannot connect to ${hostPortText(target.host, target.port)}: ${error.message}`;
      return {
        kind: "refused",
        failure: proxyFailure("proxy-handshake", "UPSTREAM_PROXY_PROTOCOL", message, error),
      };
    }
  }
}

function noTunnel(proxy: ProxyAddress, { host, port }: RouteTarget): Failure {
  const message = `${capitalized(proxyText(proxy))} forwards plain HTTP only; ${hostPortText(host, port)} needs a tunnel. Use an upstream proxy of protocol http or socks5, or put the host on the bypass list`;
  return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_CANNOT_TUNNEL", message);
}
