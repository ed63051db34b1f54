import { hostPortText } from "@headworks/host-patterns";
import { replyText, REPLY, Socks5ClientHandshake } from "@headworks/socks5";
import type { ClientFailure } from "@headworks/socks5";
import type { Failure } from "#exchange/failure.ts";
import { proxyText } from "./proxy-address.ts";
import type { ProxyAddress, ProxyCredentials } from "./proxy-address.ts";
import { capitalized, proxyFailure } from "./proxy-failure.ts";
import { socks5Host } from "./socks5-host.ts";
import type { HandshakeStep, TunnelHandshake } from "./tunnel-handshake.ts";
import { unauthorizedProxy } from "./via-http.ts";

/** CONNECT to a SOCKS5 proxy. Names are resolved there, so that nothing of them leaks here. */
export class Socks5Connect implements TunnelHandshake {
  readonly #proxy: ProxyAddress;
  readonly #place: string;
  readonly #hasCredentials: boolean;
  readonly #handshake: Socks5ClientHandshake;

  /** Throws RangeError for names and credentials that are too long for SOCKS5. */
  constructor(
    proxy: ProxyAddress,
    { host, port }: { readonly host: string; readonly port: number },
    credentials: ProxyCredentials | undefined,
  ) {
    this.#proxy = proxy;
    this.#place = hostPortText(host, port);
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
        const message = `What ${proxyText(this.#proxy)} answered is not SOCKS5 (${failure.problem})`;
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
    const who = capitalized(proxyText(this.#proxy));
    const said = `reply ${code}: ${replyText(code)}`;
    if (code === REPLY.notAllowed) {
      const message = `${who} refuses a tunnel to ${this.#place} (${said})`;
      return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_DENIED", message);
    }
    if (code === REPLY.expired) {
      const message = `${who} did not reach ${this.#place} in time (${said})`;
      return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_TIMEOUT", message);
    }
    const message = `${who} could not connect to ${this.#place} (${said})`;
    return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_CONNECT", message);
  }
}
