import type { ConnectionOptions } from "node:tls";
import { rawClient, secure, toBytes, type Octets, type RawConnection } from "./raw-connection.ts";
import { readResponse, type RawResponse } from "./raw-response.ts";

/** For {@link proxyClient}. */
export interface ProxyClientOptions {
  /** PEM of the CA that the proxy intercepts with (or the origin's own); several are allowed. */
  ca?: string | string[];
  host?: string;
  /** Fields sent to the proxy itself with every absolute-form request and CONNECT. */
  proxyHeaders?: readonly (readonly [name: string, value: string])[];
  timeoutMs?: number;
}

/** A request to send through the proxy. `Host` and, with a body, `Content-Length` are added when they are missing. */
export interface ProxiedRequest {
  method?: string;
  /** `http:` is sent in absolute form, `https:` in a TLS session inside a CONNECT tunnel. */
  url: string;
  headers?: readonly (readonly [name: string, value: string])[];
  body?: Octets;
}

/** A client that talks through a proxy, close enough to the bytes to send what no HTTP library would. */
export interface ProxyClient {
  /** One request on a connection of its own, which is closed afterwards. */
  fetch(request: string | ProxiedRequest): Promise<RawResponse>;
  /** A plain connection to the proxy, for bytes of the test's own. */
  connect(): Promise<RawConnection>;
  /** Sends CONNECT; on a 2xx the connection is the tunnel. `authority` goes out as it is. */
  tunnel(authority: string): Promise<{ response: RawResponse; connection: RawConnection }>;
  /** A TLS session inside a tunnel; rejects unless CONNECT gets a 2xx. */
  secureTunnel(host: string, port: number, options?: ConnectionOptions): Promise<RawConnection>;
}

/** A client for the proxy at `port` of this machine. */
export function proxyClient(port: number, options: ProxyClientOptions = {}): ProxyClient {
  const { timeoutMs, proxyHeaders = [] } = options;
  const connect = async (): Promise<RawConnection> =>
    await rawClient(port, {
      ...(options.host === undefined ? {} : { host: options.host }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
  const tunnel: ProxyClient["tunnel"] = async (authority) => {
    const connection = await connect();
    await connection.write(head(`CONNECT ${authority} HTTP/1.1`, [["Host", authority], ...proxyHeaders]));
    return { response: await readResponse(connection, "CONNECT", timeoutMs), connection };
  };
  const secureTunnel: ProxyClient["secureTunnel"] = async (host, targetPort, tlsOptions = {}) => {
    const bare = host.startsWith("[") ? host.slice(1, -1) : host;
    const authority = `${bare.includes(":") ? `[${bare}]` : bare}:${targetPort}`;
    const { response, connection } = await tunnel(authority);
    if (response.status < 200 || response.status > 299) {
      connection.destroy();
      throw new Error(`CONNECT ${authority} was answered ${response.status} ${response.reason}`);
    }
    const isName = !/^[0-9.]+$/.test(bare) && !bare.includes(":");
    const base: ConnectionOptions = {
      host: bare,
      ...(options.ca === undefined ? {} : { ca: options.ca }),
      ...(isName ? { servername: bare } : {}),
    };
    return await secure(connection.detach(), { ...base, ...tlsOptions }, timeoutMs);
  };
  const fetch: ProxyClient["fetch"] = async (request) => {
    const wanted = typeof request === "string" ? { url: request } : request;
    const url = new URL(wanted.url);
    const isSecure = url.protocol === "https:";
    await using connection = isSecure ? await secureTunnel(url.hostname, Number(url.port || 443)) : await connect();
    await connection.write(requestBytes(wanted, url, isSecure ? [] : proxyHeaders));
    return await readResponse(connection, wanted.method, timeoutMs);
  };
  return { fetch, connect, tunnel, secureTunnel };
}

function requestBytes(request: ProxiedRequest, url: URL, proxyHeaders: readonly (readonly [string, string])[]): Buffer {
  const target =
    url.protocol === "https:" ? url.pathname + url.search : url.href.slice(0, url.href.length - url.hash.length);
  const headers = [...(request.headers ?? []), ...proxyHeaders];
  const has = (name: string): boolean => headers.some(([each]) => each.toLowerCase() === name);
  if (!has("host")) headers.unshift(["Host", url.host]);
  const body = toBytes(request.body ?? "");
  if (request.body !== undefined && !has("content-length") && !has("transfer-encoding")) {
    headers.push(["Content-Length", String(body.length)]);
  }
  return Buffer.concat([head(`${request.method ?? "GET"} ${target} HTTP/1.1`, headers), body]);
}

const head = (startLine: string, headers: readonly (readonly [string, string])[]): Buffer =>
  Buffer.from(`${[startLine, ...headers.map(([name, value]) => `${name}: ${value}`)].join("\r\n")}\r\n\r\n`, "latin1");
