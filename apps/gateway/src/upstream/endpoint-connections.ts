import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContext } from "node:tls";
import type { Upstream } from "@headworks/gateway-contract";
import type { EndpointConnectionOptions } from "./endpoint-connection.ts";
import { tlsName } from "./upstream-host.ts";

/** How endpoints of upstreams are reached. Files of TLS are read once for each generation, not for each endpoint. */
export class EndpointConnections {
  readonly #described = new Map<Upstream, string>();
  readonly #contexts = new Map<string, { readonly made: string; readonly context: SecureContext | undefined }>();

  /** A generation was published: files may have another content now. */
  forget(): void {
    this.#described.clear();
    this.#contexts.clear();
  }

  /** Throws what the system or OpenSSL says of files that cannot be used: nothing may be trusted in their place. */
  optionsOf(
    document: Upstream,
    endpoint: { readonly address: string; readonly port: number },
  ): EndpointConnectionOptions {
    const isSecure = document.protocol === "https" || document.protocol === "http2";
    return {
      address: endpoint.address,
      port: endpoint.port,
      tls: isSecure ? { context: this.#context(document), serverName: tlsName(document, endpoint.address) } : undefined,
      connectMs: document.timeouts?.connect_ms ?? 5000,
      happyEyeballsMs: document.timeouts?.happy_eyeballs_ms ?? 250,
    };
  }

  /** Everything that connections are made of, as text. */
  describe(document: Upstream): string {
    let described = this.#described.get(document);
    if (described === undefined) this.#described.set(document, (described = describe(document)));
    return described;
  }

  /** Undefined for the public roots and no certificate of our own. */
  #context(document: Upstream): SecureContext | undefined {
    const made = this.describe(document);
    const known = this.#contexts.get(document.name);
    if (known?.made === made) return known.context;
    const context = secureContext(document);
    this.#contexts.set(document.name, { made, context });
    return context;
  }
}

function secureContext({ tls, trusted_ca_file: caFile }: Upstream): SecureContext | undefined {
  const ca = contentOf(tls?.trusted_ca_file ?? caFile);
  const cert = contentOf(tls?.client_cert_file);
  const key = contentOf(tls?.client_key_file);
  if (ca === undefined && cert === undefined) return undefined;
  // A context takes a bundle without any certificate silently, and then trusts nobody.
  if (ca !== undefined) new X509Certificate(ca);
  return createSecureContext({
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
  });
}

function contentOf(path: string | undefined): Buffer | undefined {
  return path === undefined ? undefined : readFileSync(path);
}

function describe(document: Upstream): string {
  const { protocol, tls, trusted_ca_file: caFile, connection_cap: cap, max_pending: maxPending, timeouts } = document;
  const { upstream_host: host, dns_discovery: discovery, endpoints } = document;
  // Which endpoints have a name of their own.
  const listed = discovery === undefined ? undefined : endpoints?.map(({ address }) => address);
  const files = [tls?.trusted_ca_file ?? caFile, tls?.client_cert_file, tls?.client_key_file].map((path) => {
    try {
      return [path, contentOf(path)?.toString("base64")];
    } catch {
      return [path, "unreadable"];
    }
  });
  const { connect_ms: connectMs, happy_eyeballs_ms: eyeballsMs } = timeouts ?? {};
  const {
    stalled_connection_cap: stalledCap,
    pending_timeout_ms: pendingMs,
    max_connection_age_ms: maxAgeMs,
  } = document;
  const bounds = [cap, stalledCap, maxPending, pendingMs, maxAgeMs, connectMs, eyeballsMs];
  return JSON.stringify([protocol, tls?.server_name, host, discovery?.hostname, listed, files, ...bounds]);
}
