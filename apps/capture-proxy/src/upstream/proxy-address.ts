import { hostPortText } from "@headworks/host-patterns";
/** How an upstream proxy is spoken to. */
export type ProxyProtocol = "http" | "https" | "socks5";

/** Where the upstream proxy is. */
export interface ProxyAddress {
  readonly protocol: ProxyProtocol;
  /** Name or address without brackets. */
  readonly host: string;
  readonly port: number;
}

/** User name and password for the upstream proxy. */
export interface ProxyCredentials {
  readonly username: string;
  readonly password: string;
}

/** How messages call the upstream proxy; never with its credentials. */
export function proxyText({ protocol, host, port }: ProxyAddress): string {
  return `the upstream proxy ${protocol}://${hostPortText(host, port)}`;
}

/** The value of Proxy-Authorization (RFC 7617, UTF-8). */
export function basicCredentials({ username, password }: ProxyCredentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
}
