import type { Failure, TrafficEntry } from "@headworks/capture-contract";

/** A failure in words: what happened and what to do about it. */
export interface FailureAdvice {
  readonly title: string;
  readonly explanation: string;
  readonly advice: string | null;
  /** A screen of this interface where it can be mended. */
  readonly link: { readonly to: string; readonly label: string } | null;
}

type Stage = Failure["stage"];

const STAGES: Readonly<Record<Stage, string>> = {
  resolve: "finding the server's address",
  connect: "connecting to the server",
  "proxy-handshake": "talking to the upstream proxy",
  tls: "setting up encryption",
  send: "sending the request",
  receive: "reading the response",
  "client-read": "reading the request",
  "client-write": "passing the response on to the client",
  policy: "applying a rule",
};

/** The stage in words, for `Failed while …`. */
function stageText(stage: Stage): string {
  return STAGES[stage];
}

const UPSTREAM: Readonly<Partial<Record<Stage, Omit<FailureAdvice, "title">>>> = {
  resolve: {
    explanation: "The name of the server could not be turned into an address.",
    advice:
      "Check the spelling of the host, and whether this machine can resolve it. A name that only exists inside a VPN needs the VPN here.",
    link: null,
  },
  connect: {
    explanation: "No connection to the server came about.",
    advice:
      "The server may be down, or a firewall may be in between. If the network demands a proxy, set an upstream proxy.",
    link: { to: "/settings#upstream-proxy", label: "Upstream proxy settings" },
  },
  "proxy-handshake": {
    explanation: "The upstream proxy did not open the way to the server.",
    advice: "Check the upstream proxy's address, user name and password.",
    link: { to: "/settings#upstream-proxy", label: "Upstream proxy settings" },
  },
  tls: {
    explanation:
      "The server's certificate was not accepted, or no encryption both sides know was found. No part of the request was sent.",
    advice:
      "If the server uses a private authority, add its root under upstream CA file. For a test server, list the host under hosts that are not verified.",
    link: { to: "/settings#origin-tls", label: "TLS settings" },
  },
  send: {
    explanation: "The server closed the connection while the request was being sent.",
    advice: "Servers do this when a body is too large or a request takes too long. Look for limits on the server.",
    link: null,
  },
  receive: {
    explanation:
      "The server closed the connection, went silent, or sent something that is not HTTP before the response was complete.",
    advice: "What had arrived by then is shown. Repeat the request to see whether it always stops there.",
    link: null,
  },
};

const CLIENT: Readonly<Partial<Record<Stage, Omit<FailureAdvice, "title">>>> = {
  tls: {
    explanation:
      "The client refused Weir's certificate, so it does not trust Weir's authority yet, or it only accepts certificates it knows (pinning).",
    advice:
      "Install the certificate on the client. For an app with pinned certificates, add the host to the hosts that are not intercepted.",
    link: { to: "/connect", label: "Set up the certificate" },
  },
  "client-read": {
    explanation: "The client went away, or sent something that is not HTTP, before its request was complete.",
    advice: null,
    link: null,
  },
  "client-write": {
    explanation: "The client went away before it had the whole response.",
    advice: "Often a navigation, a closed tab, or a time limit in the client.",
    link: null,
  },
};

const TITLES: Readonly<Record<Failure["side"], string>> = {
  client: "The client's side failed",
  upstream: "The server's side failed",
  internal: "Weir could not go on",
};

/** What is wrong at an upstream proxy, told apart by code where stages do not tell it. */
const AT_THE_PROXY: Readonly<Record<string, Omit<FailureAdvice, "title" | "link">>> = {
  UPSTREAM_PROXY_UNREACHABLE: {
    explanation: "No connection to the upstream proxy came about; the server was not asked.",
    advice: "Check the upstream proxy's host and port, and whether it runs.",
  },
  UPSTREAM_PROXY_TIMEOUT: {
    explanation: "The upstream proxy did not answer in time; the server was not asked, or not reached.",
    advice: "The proxy may be overloaded, or the server behind it slow to connect to.",
  },
  UPSTREAM_PROXY_TLS: {
    explanation: "The encrypted connection to the upstream proxy itself failed.",
    advice: "Is it a proxy that is spoken to over TLS? If its certificate is from a private authority, add its root.",
  },
  UPSTREAM_PROXY_AUTH: {
    explanation: "The upstream proxy asked for a user name and password, or refused those that are set.",
    advice: "Set the right ones; they are used at once.",
  },
  UPSTREAM_PROXY_DENIED: {
    explanation: "The upstream proxy refuses to go to this server.",
    advice: "It may allow only some hosts or ports. A host that needs no proxy can be listed as reached directly.",
  },
  UPSTREAM_PROXY_CONNECT: {
    explanation: "The upstream proxy could not reach the server.",
    advice: "The proxy works; the trouble is between it and the server.",
  },
  UPSTREAM_PROXY_PROTOCOL: {
    explanation: "What is there does not answer like a proxy of the chosen kind.",
    advice: "Check the protocol and the port of the upstream proxy.",
  },
  UPSTREAM_PROXY_CLOSED: {
    explanation: "The upstream proxy closed the connection before it had answered.",
    advice: "Check the protocol and the port of the upstream proxy, and its log.",
  },
  UPSTREAM_PROXY_CANNOT_TUNNEL: {
    explanation: "A proxy that is spoken to over TLS gets requests one by one; it cannot carry this connection.",
    advice: "Choose http or socks5 as the protocol, or list the host as reached directly.",
  },
};

/** Explains why an exchange failed. */
export function failureAdvice(failure: Failure): FailureAdvice {
  const title = `${TITLES[failure.side]} while ${stageText(failure.stage)}`;
  if (failure.stage === "policy") return { title: "A rule stopped this", ...policyAdvice(failure) };
  const atTheProxy = AT_THE_PROXY[failure.code];
  if (atTheProxy !== undefined) {
    return {
      title: "The upstream proxy let this down",
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
  return { title, ...(known ?? { explanation: failure.message, advice: null, link: null }) };
}

function policyAdvice(failure: Failure): Omit<FailureAdvice, "title"> {
  if (/BLOCK/u.test(failure.code)) {
    return {
      explanation: "The host is on the block list.",
      advice: "Switch the entry off if this request should pass.",
      link: { to: "/blocklist", label: "Block list" },
    };
  }
  return { explanation: failure.message, advice: null, link: { to: "/settings", label: "Settings" } };
}

/** Why the bytes of a tunnel were not read; null for entries that are none. */
export function tunnelReason(
  entry: Pick<TrafficEntry, "is_passthrough"> & { readonly request: { readonly http_version: string | null } },
): string | null {
  if (!entry.is_passthrough) return null;
  if (entry.request.http_version === "SOCKS5") {
    return "The client came by SOCKS5. What goes through it is passed on unread; use Weir as an HTTP proxy to read it.";
  }
  return "The bytes of this connection were passed on unread: its host is not intercepted, HTTPS interception is off, or it does not speak HTTP.";
}
