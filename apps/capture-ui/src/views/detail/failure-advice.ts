import type { Failure, TrafficEntry } from "@headworks/capture-contract";

export interface FailureAdvice {
  readonly title: string;
  readonly explanation: string;
  readonly advice: string | null;
  /** A screen where it can be fixed. */
  readonly link: { readonly to: string; readonly label: string } | null;
}

type Stage = Failure["stage"];

const STAGES: Readonly<Record<Stage, string>> = {
  resolve: "resolving the host name",
  connect: "connecting to the server",
  "proxy-handshake": "connecting through the upstream proxy",
  tls: "negotiating TLS",
  send: "sending the request",
  receive: "reading the response",
  "client-read": "reading the request",
  "client-write": "sending the response to the client",
  policy: "applying a rule",
};

const UPSTREAM: Readonly<Partial<Record<Stage, FailureAdvice>>> = {
  resolve: {
    title: "DNS lookup failed",
    explanation: "The server's host name could not be resolved.",
    advice:
      "Check the spelling of the host and whether this machine can resolve it. A host name that only resolves inside a VPN requires this machine to be connected to it.",
    link: null,
  },
  connect: {
    title: "Connection to the server failed",
    explanation: "Could not connect to the server.",
    advice: "The server may be down or behind a firewall. If the network requires a proxy, set an upstream proxy.",
    link: { to: "/settings#upstream-proxy", label: "Upstream proxy settings" },
  },
  "proxy-handshake": {
    title: "Connection through the upstream proxy failed",
    explanation: "The upstream proxy did not open a connection to the server.",
    advice: "Check the upstream proxy's address, user name and password.",
    link: { to: "/settings#upstream-proxy", label: "Upstream proxy settings" },
  },
  tls: {
    title: "TLS handshake with the server failed",
    explanation:
      "The server's certificate was not accepted, or client and server have no TLS version or cipher in common. No part of the request was sent.",
    advice:
      "If the server uses a private CA, add its root certificate under additional root certificates. For a test server, add the host to the hosts excluded from verification.",
    link: { to: "/settings#origin-tls", label: "TLS settings" },
  },
  send: {
    title: "Sending the request to the server failed",
    explanation: "The server closed the connection while the request was being sent.",
    advice: "Servers do this when a body is too large or a request takes too long. Check the server's limits.",
    link: null,
  },
  receive: {
    title: "Reading the response from the server failed",
    explanation: "The server closed the connection, timed out, or sent invalid HTTP before the response was complete.",
    advice: "The part received so far is shown. Resend the request to see whether it always fails at the same point.",
    link: null,
  },
};

const CLIENT: Readonly<Partial<Record<Stage, FailureAdvice>>> = {
  tls: {
    title: "The client rejected Weir's certificate",
    explanation: "The client does not trust Weir's CA yet, or accepts only pinned certificates.",
    advice:
      "Install the CA certificate on the client. For an app with pinned certificates, exclude the host from decryption.",
    link: { to: "/connect", label: "Set up the certificate" },
  },
  "client-read": {
    title: "Reading the request from the client failed",
    explanation: "The client disconnected or sent invalid HTTP before its request was complete.",
    advice: null,
    link: null,
  },
  "client-write": {
    title: "Sending the response to the client failed",
    explanation: "The client disconnected before receiving the whole response.",
    advice: "Common causes are a navigation, a closed tab, or a timeout in the client.",
    link: null,
  },
};

const TITLES: Readonly<Record<Failure["side"], string>> = {
  client: "Client error",
  upstream: "Server error",
  internal: "Internal error",
};

/** Failures of an upstream proxy, by code where the stage is ambiguous. */
const AT_THE_PROXY: Readonly<Record<string, Omit<FailureAdvice, "title" | "link">>> = {
  UPSTREAM_PROXY_UNREACHABLE: {
    explanation: "Could not connect to the upstream proxy; the server was not contacted.",
    advice: "Check the upstream proxy's host and port, and whether it is running.",
  },
  UPSTREAM_PROXY_TIMEOUT: {
    explanation: "The upstream proxy did not respond in time; the server was not reached.",
    advice: "The proxy may be overloaded, or slow to connect to the server.",
  },
  UPSTREAM_PROXY_TLS: {
    explanation: "The TLS handshake with the upstream proxy failed.",
    advice:
      "Check that the proxy accepts TLS connections. If its certificate is from a private CA, add its root certificate.",
  },
  UPSTREAM_PROXY_AUTH: {
    explanation: "The upstream proxy requires a user name and password, or rejected the configured ones.",
    advice: "Correct them in the settings; they take effect immediately.",
  },
  UPSTREAM_PROXY_DENIED: {
    explanation: "The upstream proxy refuses to connect to this server.",
    advice: "It may allow only some hosts or ports. Hosts that need no proxy can be set to connect directly.",
  },
  UPSTREAM_PROXY_CONNECT: {
    explanation: "The upstream proxy could not reach the server.",
    advice: "The proxy works; the problem is between the proxy and the server.",
  },
  UPSTREAM_PROXY_PROTOCOL: {
    explanation: "The upstream did not respond like a proxy with the configured protocol.",
    advice: "Check the protocol and the port of the upstream proxy.",
  },
  UPSTREAM_PROXY_CLOSED: {
    explanation: "The upstream proxy closed the connection before responding.",
    advice: "Check the protocol and the port of the upstream proxy, and its log.",
  },
  UPSTREAM_PROXY_CANNOT_TUNNEL: {
    explanation: "A proxy reached over TLS only forwards individual requests; it cannot tunnel this connection.",
    advice: "Choose http or socks5 as the protocol, or set the host to connect directly.",
  },
};

/** Explains why an exchange failed. */
export function failureAdvice(failure: Failure): FailureAdvice {
  if (failure.stage === "policy") return { title: "A rule stopped this request", ...policyAdvice(failure) };
  const atTheProxy = AT_THE_PROXY[failure.code];
  if (atTheProxy !== undefined) {
    return {
      title: "The upstream proxy failed",
      ...atTheProxy,
      link: { to: "/settings#upstream-proxy", label: "Upstream proxy settings" },
    };
  }
  const known =
    failure.side === "client"
      ? CLIENT[failure.stage]
      : failure.side === "upstream"
        ? UPSTREAM[failure.stage]
        : undefined;
  return (
    known ?? {
      title: `${TITLES[failure.side]} while ${STAGES[failure.stage]}`,
      explanation: failure.message,
      advice: null,
      link: null,
    }
  );
}

function policyAdvice(failure: Failure): Omit<FailureAdvice, "title"> {
  if (/BLOCK/u.test(failure.code)) {
    return {
      explanation: "The host is on the block list.",
      advice: "Disable the entry to let this request through.",
      link: { to: "/blocklist", label: "Block list" },
    };
  }
  return { explanation: failure.message, advice: null, link: { to: "/settings", label: "Settings" } };
}

/** Reason why a tunnel's bytes were not decoded; null for other entries. */
export function tunnelReason(
  entry: Pick<TrafficEntry, "is_passthrough"> & { readonly request: { readonly http_version: string | null } },
): string | null {
  if (!entry.is_passthrough) return null;
  if (entry.request.http_version === "SOCKS5") {
    return "The client connected through SOCKS5. Its data is forwarded without being decoded; use Weir as an HTTP proxy to inspect it.";
  }
  return "This connection was forwarded without being decoded: its host is excluded from decryption, HTTPS decryption is off, or it does not use HTTP.";
}
