import { hostPortText } from "@headworks/host-patterns";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure, FailureCode } from "#exchange/failure.ts";

type NodeError = NodeJS.ErrnoException & {
  readonly errors?: readonly NodeJS.ErrnoException[];
  readonly reason?: string;
};

/** Explains a failed name lookup or TCP connection for the error page. */
export function connectFailure(error: NodeError, host: string, port: number): Failure {
  const hostPort = hostPortText(host, port);
  const first = error.errors?.[0] ?? error;
  switch (first.code) {
    case "ENOTFOUND":
    case "EAI_NODATA":
    case "EAI_NONAME":
      return failure("resolve", "DNS_NOT_FOUND", `The name ${host} does not exist`, error);
    case "EAI_AGAIN":
    case "EAI_FAIL":
    case "ESERVFAIL":
    case "ETIMEOUT":
      return failure("resolve", "DNS_FAILED", `The name ${host} could not be resolved (${first.code})`, error);
    case "ECONNREFUSED":
      return failure("connect", "UPSTREAM_REFUSED", `${hostPort} refused the connection`, error);
    case "ETIMEDOUT":
      return failure("connect", "UPSTREAM_TIMEOUT", `${hostPort} did not accept the connection in time`, error);
    case "ECONNRESET":
    case "EPIPE":
      return failure("connect", "UPSTREAM_RESET", `${hostPort} reset the connection`, error);
    default:
      return failure(
        "connect",
        "UPSTREAM_UNREACHABLE",
        `${hostPort} cannot be reached (${first.code ?? first.message})`,
        error,
      );
  }
}

/** Error codes of handshakes with servers too old for the default TLS versions. */
const OLD_TLS: ReadonlySet<string> = new Set([
  "ERR_SSL_UNSUPPORTED_PROTOCOL",
  "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
  "ERR_SSL_UNSAFE_LEGACY_RENEGOTIATION_DISABLED",
  "ERR_SSL_DH_KEY_TOO_SMALL",
  "ERR_SSL_EE_KEY_TOO_SMALL",
  "ERR_SSL_CA_MD_TOO_WEAK",
  "ERR_SSL_EE_MD_TOO_WEAK",
]);

type ClientCertificate = UpstreamTlsFacts["clientCertificate"];

/** A failure between the TCP connection and the first request byte. */
export function tlsFailure(error: NodeError, serverName: string, clientCertificate: ClientCertificate): Failure {
  const code = error.code ?? "";
  const refusal = clientCertificateFailure(error, serverName, clientCertificate, "tls");
  if (refusal !== undefined) return refusal;
  const certificateProblem = CERTIFICATE_PROBLEMS[code];
  if (certificateProblem !== undefined) {
    const detail = code === "ERR_TLS_CERT_ALTNAME_INVALID" && error.reason ? ` (${error.reason})` : "";
    const message = `The certificate of ${serverName} ${certificateProblem}${detail}; nothing was sent to it`;
    return failure("tls", "UPSTREAM_CERTIFICATE", message, error);
  }
  if (code === "ECONNRESET" || code === "EPIPE") {
    const message = `${serverName} reset the connection during TLS${clientCertificateNote(clientCertificate)}`;
    return failure("tls", "UPSTREAM_RESET", message, error);
  }
  const hint = OLD_TLS.has(code) ? "; tls_min_version lets Weir speak older TLS with this host" : "";
  const message = `TLS with ${serverName} failed (${error.reason ?? (code || error.message)})${hint}`;
  return failure("tls", "UPSTREAM_TLS", message, error);
}

export function brokenConnection(
  error: NodeError,
  hostPort: string,
  stage: "send" | "receive",
  clientCertificate: ClientCertificate,
): Failure {
  const refusal = clientCertificateFailure(error, hostPort, clientCertificate, stage);
  if (refusal !== undefined) return refusal;
  const isReset = error.code === "ECONNRESET" || error.code === "EPIPE" || error.code === "ECONNABORTED";
  const note = clientCertificateNote(clientCertificate);
  if (isReset) return failure(stage, "UPSTREAM_RESET", `${hostPort} reset the connection${note}`, error);
  const message = `The connection to ${hostPort} broke (${error.code ?? error.message})${note}`;
  return failure(stage, "UPSTREAM_CLOSED", message, error);
}

/** Sentence ending for an upstream that closed without an alert, as some do to reject certificates. */
export function clientCertificateNote(clientCertificate: ClientCertificate): string {
  if (clientCertificate === undefined) return "";
  return clientCertificate === "none"
    ? "; it requested a client certificate, but none is configured for it (upstream_client_certificates)"
    : "; it requested a client certificate and received the configured one";
}

/** TLS 1.3 reports a rejected or missing client certificate only after the handshake. */
function clientCertificateFailure(
  error: NodeError,
  hostPort: string,
  clientCertificate: ClientCertificate,
  stage: Failure["stage"],
): Failure | undefined {
  if (clientCertificate === undefined || error.code?.includes("_ALERT_") !== true) return undefined;
  const message =
    clientCertificate === "none"
      ? `${hostPort} requires a client certificate, but none is configured for it (upstream_client_certificates)`
      : `${hostPort} rejected the configured client certificate (${error.reason ?? error.code})`;
  return failure(stage, "UPSTREAM_CLIENT_CERTIFICATE", message, error);
}

function failure(stage: Failure["stage"], code: FailureCode, message: string, cause: unknown): Failure {
  return { stage, side: "upstream", code, message, cause };
}

const CERTIFICATE_PROBLEMS: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: "is for another name",
  CERT_HAS_EXPIRED: "has expired",
  CERT_NOT_YET_VALID: "is not valid yet",
  CERT_REVOKED: "was revoked",
  CERT_REJECTED: "is not trusted for this purpose",
  CERT_UNTRUSTED: "is not trusted",
  CERT_CHAIN_TOO_LONG: "has too long a chain",
  CERT_SIGNATURE_FAILURE: "has a wrong signature",
  DEPTH_ZERO_SELF_SIGNED_CERT: "is signed by itself",
  SELF_SIGNED_CERT_IN_CHAIN: "comes from an unknown authority",
  UNABLE_TO_GET_ISSUER_CERT: "comes from an unknown authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "comes from an unknown authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "comes from an unknown authority",
  INVALID_CA: "comes from an authority that may not issue it",
  INVALID_PURPOSE: "is not meant for servers",
  PATH_LENGTH_EXCEEDED: "has too long a chain",
  HOSTNAME_MISMATCH: "is for another name",
};
