import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { SecureContext } from "node:tls";
import { NOT_IN_SET, type DeadlineSweep, type Timed } from "@headworks/sockets";
import type { ClientFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";

interface HandshakeOptions {
  /** Paused, with the ClientHello unshifted. */
  readonly socket: Duplex;
  readonly secureContext: SecureContext;
  readonly serverName: string | undefined;
  /** The client's target, for messages. */
  readonly host: string;
  readonly facts: ClientFacts;
  readonly timeoutMs: number;
  readonly deadlines: DeadlineSweep;
  /** For ALPN, in order of preference. */
  readonly protocols: readonly string[];
  readonly done: (socket: TLSSocket, facts: ClientFacts) => void;
  readonly failed: (failure: Failure) => void;
}

/** Performs the server side of a TLS handshake; calls one of the two outcomes once. */
export function terminateTls(options: HandshakeOptions): void {
  const { socket, secureContext, serverName, host, facts, timeoutMs, deadlines, protocols, done, failed } = options;
  const secure = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: [...protocols] });
  let isSettled = false;
  const settle = (): boolean => {
    if (isSettled) return false;
    isSettled = true;
    deadlines.delete(handshake);
    secure.off("secure", onSecure);
    secure.off("_tlsError", onError);
    secure.off("error", onError);
    secure.off("close", onClose);
    secure.off("end", onClose);
    secure.off("readable", onReadable);
    return true;
  };
  const fail = (failure: Failure): void => {
    if (!settle()) return;
    secure.on("error", () => undefined);
    secure.destroy();
    socket.destroy();
    failed(failure);
  };
  const onSecure = (): void => {
    if (!settle()) return;
    const tls = { version: secure.getProtocol() ?? "", cipher: secure.getCipher().standardName };
    done(secure, { ...facts, sni: serverName, tls });
  };
  const onError = (error: NodeJS.ErrnoException): void => fail(clientTlsFailure(error, host));
  const onClose = (): void =>
    fail({
      stage: "tls",
      side: "client",
      code: "CLIENT_CERTIFICATE_REFUSED",
      message: `The client closed the connection to ${host} during TLS; it probably does not trust the certificate of this proxy`,
    });
  // There is no reader yet, and a stream emits "end" only while it is read.
  const onReadable = (): void => void secure.read(0);
  const handshake: Timed = {
    setIndex: NOT_IN_SET,
    deadlineMs: performance.now() + timeoutMs,
    onDeadline: () => {
      const message = `The client did not complete TLS within ${timeoutMs} ms`;
      fail({ stage: "tls", side: "client", code: "CLIENT_TIMEOUT", message });
    },
  };
  deadlines.add(handshake);
  secure.on("secure", onSecure);
  secure.on("_tlsError", onError);
  secure.on("error", onError);
  secure.on("close", onClose);
  secure.on("end", onClose);
  secure.on("readable", onReadable);
}

/** Alerts of clients that reject the certificate (RFC 8446, 6.2). */
const REFUSALS = [
  "UNKNOWN_CA",
  "BAD_CERTIFICATE",
  "CERTIFICATE_UNKNOWN",
  "CERTIFICATE_EXPIRED",
  "CERTIFICATE_REVOKED",
  "UNSUPPORTED_CERTIFICATE",
  "ACCESS_DENIED",
];

function clientTlsFailure(error: NodeJS.ErrnoException & { reason?: string }, host: string): Failure {
  const code = (error.code ?? "").toUpperCase();
  const alert = REFUSALS.find((name) => code.endsWith(name));
  if (alert !== undefined) {
    const message = `The client refused the certificate for ${host} (alert ${alert.toLowerCase().replaceAll("_", " ")}): it does not trust the CA of this proxy`;
    return { stage: "tls", side: "client", code: "CLIENT_CERTIFICATE_REFUSED", message, cause: error };
  }
  if (code === "ERR_SSL_NO_APPLICATION_PROTOCOL") {
    const message = `The client speaks none of the protocols it was offered for ${host}; one that insists on HTTP/2 needs enable_h2_downstream`;
    return { stage: "tls", side: "client", code: "CLIENT_TLS", message, cause: error };
  }
  if (code === "ERR_SSL_NO_SHARED_CIPHER" || code === "ERR_SSL_UNSUPPORTED_PROTOCOL") {
    const message = `The client offers no version and cipher suite of TLS that it may use on the way to ${host}; one that is too old for others needs legacy_client_tls`;
    return { stage: "tls", side: "client", code: "CLIENT_TLS", message, cause: error };
  }
  if (code === "ECONNRESET" || code === "EPIPE") {
    const message = `The client reset the connection to ${host} during TLS; it probably does not trust the certificate of this proxy`;
    return { stage: "tls", side: "client", code: "CLIENT_CERTIFICATE_REFUSED", message, cause: error };
  }
  const message = `TLS with the client failed on the way to ${host} (${error.reason ?? error.code ?? error.message})`;
  return { stage: "tls", side: "client", code: "CLIENT_TLS", message, cause: error };
}
