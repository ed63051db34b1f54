import { hostPortText } from "@headworks/host-patterns";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure, FailureCode, FailureStage } from "#exchange/failure.ts";
import { connectFailure, tlsFailure } from "./connect-failure.ts";

type ProxyProtocol = "http" | "https" | "socks5";

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

export type ProxyStep = "resolve" | "connect" | "tls" | "handshake";

const STAGES: Readonly<Record<ProxyStep, FailureStage>> = {
  resolve: "resolve",
  connect: "connect",
  tls: "tls",
  handshake: "proxy-handshake",
};

const UNDONE: Readonly<Record<ProxyStep, string>> = {
  resolve: "be resolved",
  connect: "accept the connection",
  tls: "complete TLS",
  handshake: "open a tunnel",
};

/** A failure of the upstream proxy, with its own codes so that the origin is not blamed. */
export function proxyFailure(
  stage: FailureStage,
  code: FailureCode & `UPSTREAM_PROXY_${string}`,
  message: string,
  cause?: unknown,
): Failure {
  return { stage, side: "upstream", code, message, ...(cause === undefined ? {} : { cause }) };
}

/** The connection to the upstream proxy failed or broke. */
export function brokenProxy(
  proxy: ProxyAddress,
  step: ProxyStep,
  error: NodeJS.ErrnoException,
  clientCertificate: UpstreamTlsFacts["clientCertificate"],
): Failure {
  const name = capitalized(proxyText(proxy));
  // TLS 1.3 rejects client certificates after the handshake.
  if (step === "tls" || error.code?.includes("_ALERT_") === true) {
    const { code, message } = tlsFailure(error, proxy.host, clientCertificate);
    const isReset = code === "UPSTREAM_RESET";
    return proxyFailure(
      "tls",
      isReset ? "UPSTREAM_PROXY_CLOSED" : "UPSTREAM_PROXY_TLS",
      `${name} cannot be used: ${message}`,
      error,
    );
  }
  if (step === "handshake") {
    return proxyFailure(
      "proxy-handshake",
      "UPSTREAM_PROXY_CLOSED",
      `${name} broke the connection before the tunnel was open (${error.code ?? error.message})`,
      error,
    );
  }
  const { stage, code, message } = connectFailure(error, proxy.host, proxy.port);
  const isLate = code === "UPSTREAM_TIMEOUT";
  return proxyFailure(
    stage,
    isLate ? "UPSTREAM_PROXY_TIMEOUT" : "UPSTREAM_PROXY_UNREACHABLE",
    `${name} cannot be used: ${message}`,
    error,
  );
}

export function closedProxy(proxy: ProxyAddress, step: ProxyStep): Failure {
  const message = `${capitalized(proxyText(proxy))} closed the connection before it could ${ABLE[step]}`;
  return proxyFailure(STAGES[step], "UPSTREAM_PROXY_CLOSED", message);
}

const ABLE: Readonly<Record<ProxyStep, string>> = {
  resolve: "be used",
  connect: "be used",
  tls: "be used",
  handshake: "carry a tunnel",
};

export function lateProxy(proxy: ProxyAddress, step: ProxyStep, timeoutMs: number): Failure {
  const message = `${capitalized(proxyText(proxy))} did not ${UNDONE[step]} within ${timeoutMs} ms`;
  return proxyFailure(STAGES[step], "UPSTREAM_PROXY_TIMEOUT", message);
}

/** A peer's text for use in a sentence: short, printable ASCII. */
export function quotable(text: string): string {
  const clean = text.replace(/[^\x20-\x7e]+/g, " ").trim();
  return clean.length > 80 ? `${clean.slice(0, 77)}...` : clean;
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
