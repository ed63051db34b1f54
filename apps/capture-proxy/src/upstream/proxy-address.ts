import { hostPortText } from "@headworks/host-patterns";
export type ProxyProtocol = "http" | "https" | "socks5";

export interface ProxyAddress {
  readonly protocol: ProxyProtocol;
  /** Name or address without brackets. */
  readonly host: string;
  readonly port: number;
}

export interface ProxyCredentials {
  readonly username: string;
  readonly password: string;
}

/** The proxy's URL for messages, without credentials. */
export function proxyText({ protocol, host, port }: ProxyAddress): string {
  return `the upstream proxy ${protocol}://${hostPortText(host, port)}`;
}

/** The value of Proxy-Authorization (RFC 7617, UTF-8). */
export function basicCredentials({ username, password }: ProxyCredentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
}
