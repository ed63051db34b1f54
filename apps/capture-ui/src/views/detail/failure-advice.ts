import type { Failure, TrafficEntry } from "@headworks/capture-contract";

/** A failure in words: what happened and what to do about it. */
export interface FailureAdvice {
  readonly title: string;
  readonly explanation: string;
  readonly advice: string | null;
  /** A screen of this interface where it can be mended. */
  readonly link: { readonly to: "/connect" | "/settings" | "/blocklist"; readonly label: string } | null;
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
    link: { to: "/settings", label: "Upstream proxy settings" },
  },
  "proxy-handshake": {
    explanation: "The upstream proxy did not open the way to the server.",
    advice: "Check the upstream proxy's address, user name and password.",
    link: { to: "/settings", label: "Upstream proxy settings" },
  },
  tls: {
    explanation:
      "The server's certificate was not accepted, or no encryption both sides know was found. No part of the request was sent.",
    advice:
      "If the server uses a private authority, add its root under upstream CA file. For a test server, list the host under hosts that are not verified.",
    link: { to: "/settings", label: "TLS settings" },
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

/** Explains why an exchange failed. */
export function failureAdvice(failure: Failure): FailureAdvice {
  const title = `${TITLES[failure.side]} while ${stageText(failure.stage)}`;
  if (failure.stage === "policy") return { title: "A rule stopped this", ...policyAdvice(failure) };
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
export function tunnelReason(entry: Pick<TrafficEntry, "is_passthrough" | "failure">): string | null {
  if (!entry.is_passthrough) return null;
  return "The bytes of this connection were passed on unread: its host is not intercepted, HTTPS interception is off, or it does not speak HTTP.";
}
