import { hostPortText } from "@headworks/host-patterns";
import { requestHeadText, ResponseReader } from "@headworks/http1";
import type { Http1Error, ResponseHead } from "@headworks/http1";
import type { Failure } from "#exchange/failure.ts";
import { proxyText } from "./proxy-address.ts";
import type { ProxyAddress } from "./proxy-address.ts";
import { capitalized, proxyFailure, quotable } from "./proxy-failure.ts";
import type { HandshakeStep, TunnelHandshake } from "./tunnel-handshake.ts";

/** Fields of the CONNECT request. */
export interface ConnectFields {
  /** Value of Proxy-Authorization. */
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
  readonly #place: string;
  readonly #said: ConnectFields;
  readonly #reader: ResponseReader;
  #head: ResponseHead | undefined;
  #error: Http1Error | undefined;

  constructor(proxy: ProxyAddress, target: { readonly host: string; readonly port: number }, said: ConnectFields) {
    this.#proxy = proxy;
    this.#place = hostPortText(target.host, target.port);
    this.#said = said;
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
    const { authorization, via } = this.#said;
    const fields = ["Host", this.#place];
    if (authorization !== undefined) fields.push("Proxy-Authorization", authorization);
    for (const value of via) fields.push("Via", value);
    return Buffer.from(requestHeadText("CONNECT", this.#place, fields), "latin1");
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

  #refusal({ status, reason }: ResponseHead): Failure {
    const said = quotable(`${status} ${reason}`);
    const who = capitalized(proxyText(this.#proxy));
    // Some proxies use 401 for 407; only the proxy itself can have responded to CONNECT.
    if (status === 407 || status === 401) return unauthorizedProxy(this.#proxy, this.#said.authorization !== undefined);
    if (status === 508) {
      const message = `By way of ${proxyText(this.#proxy)}, the way to ${this.#place} leads round in a circle (${said})`;
      return { stage: "proxy-handshake", side: "upstream", code: "LOOP", message };
    }
    if (status === 504) {
      const message = `${who} did not reach ${this.#place} in time (${said})`;
      return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_TIMEOUT", message);
    }
    if (status >= 500) {
      const message = `${who} could not connect to ${this.#place} (${said})`;
      return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_CONNECT", message);
    }
    const message = `${who} refuses a tunnel to ${this.#place} (${said})`;
    return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_DENIED", message);
  }
}

/** The proxy requires credentials or rejected the given ones. */
export function unauthorizedProxy(proxy: ProxyAddress, hadCredentials: boolean): Failure {
  const what = hadCredentials ? "does not accept the configured credentials" : "asks for credentials; none are set";
  const message = `${capitalized(proxyText(proxy))} ${what}`;
  return proxyFailure("proxy-handshake", "UPSTREAM_PROXY_AUTH", message);
}
