import { lookup } from "node:dns/promises";
import type { Socket } from "node:net";
import { checkServerIdentity, connect, createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import type { Logger } from "pino";
import { parseAddress } from "@headworks/host-patterns";
import { connectFirst } from "./connect-first.ts";
import { asEgressError, EgressError, timedOut } from "./egress-failure.ts";
import type { EgressFilter } from "./egress-filter.ts";

/** The system's resolver with its hosts file. Proxy variables are ignored. */
export const systemLookup: NameLookup = async (host) => {
  const found = await lookup(host, { all: true, order: "verbatim" });
  return found.map(({ address }) => address);
};

/** Purpose of a connection; label of its counters. */
export type EgressPurpose = "webhook" | "callout" | "key-set" | "introspection" | "traces";

/** Rules of the running generation for outbound connections. */
export interface EgressRules {
  /** Undefined: every address may be dialled. */
  readonly filter: EgressFilter | undefined;
  readonly dnsTimeoutMs: number;
}

export interface DialTarget {
  /** A name or an address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
  /** Certificates (PEM) to trust instead of the dialer's; pass the same array again, so that it is parsed once. */
  readonly roots?: readonly string[];
}

export interface EgressDialerParts {
  readonly log: Logger;
  /** Replaces the system's lookup. */
  readonly lookup?: NameLookup;
  /** Certificates (PEM) instead of the public roots. */
  readonly roots?: readonly string[];
}

const DEFAULT_DNS_TIMEOUT_MS = 2000;
/** Minimum interval of a repeated log line. */
const REPEAT_MS = 1000;

/** Only the bundled roots: additions of the environment and of the system are not public roots. */
const publicRoots: readonly string[] = getCACertificates("bundled");

/** Rules without a filter, as of an empty document. */
export const OPEN_RULES: EgressRules = { filter: undefined, dnsTimeoutMs: DEFAULT_DNS_TIMEOUT_MS };

/**
 * Opens outbound connections of the gateway itself. A name is resolved for every connection, all its addresses are
 * checked by the filter, and exactly one of them is dialled; TLS and Host keep the name. Any error prevents the
 * connection. Proxy variables of the environment are ignored.
 */
export class EgressDialer {
  readonly #log: Logger;
  readonly #lookup: NameLookup;
  readonly #roots: readonly string[] | undefined;
  readonly #denied = new Map<EgressPurpose, number>();
  readonly #reported = new Map<string, { atMs: number; count: number }>();
  #rules: EgressRules = OPEN_RULES;
  readonly #contexts = new WeakMap<readonly string[], SecureContext>();

  constructor(parts: EgressDialerParts) {
    this.#log = parts.log;
    this.#lookup = oneAtATime(parts.lookup ?? systemLookup);
    this.#roots = parts.roots;
  }

  /** Applies the rules of a new generation, also to pending dials that were not checked yet. */
  apply(rules: EgressRules): void {
    this.#rules = rules;
    this.#reported.clear();
  }

  /** Number of refusals by purpose (`gateway_ssrf_denied_total`). */
  get denied(): ReadonlyMap<EgressPurpose, number> {
    return this.#denied;
  }

  /**
   * Returns a connected socket, for https with a verified certificate. It has no error listener. @throws EgressError,
   * `timeout` when `signal` aborts
   */
  async dial(target: DialTarget, purpose: EgressPurpose, signal: AbortSignal): Promise<Socket> {
    const addresses = await this.#addressesOf(target.host, signal);
    this.#demandPermitted(target.host, addresses, purpose);
    const socket = await connectFirst(addresses, target.port, signal);
    return target.isSecure ? await this.#secure(socket, target, signal) : socket;
  }

  async #addressesOf(host: string, signal: AbortSignal): Promise<readonly string[]> {
    if (parseAddress(host) !== undefined) return [host];
    // With a filter, an unknown destination ends the whole delivery or callout.
    const isFinal = this.#rules.filter !== undefined;
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new EgressError("dns_timeout", "Looking up the name took too long", isFinal)),
      this.#rules.dnsTimeoutMs,
    );
    const onAbort = (): void => reject(timedOut());
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      const found = await Promise.race([this.#lookup(host), promise]);
      if (found.length === 0) throw new EgressError("dns_failed", "The name has no address", isFinal);
      return found;
    } catch (error) {
      if (error instanceof EgressError) throw error;
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
      throw new EgressError("dns_failed", `The name cannot be looked up (${code})`, isFinal);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    }
  }

  #demandPermitted(host: string, addresses: readonly string[], purpose: EgressPurpose): void {
    const { filter } = this.#rules;
    if (filter === undefined) return;
    for (const address of addresses) {
      let verdict: ReturnType<EgressFilter["judge"]>;
      try {
        verdict = filter.judge(address);
      } catch (error) {
        this.#log.error({ code: "ssrf_filter_failed", err: error }, "The egress filter failed; nothing is dialled");
        throw new EgressError("filter_failed", "The egress filter cannot judge an address", true);
      }
      if (verdict === "permitted") continue;
      if (verdict === "unreadable") {
        throw new EgressError("filter_failed", "The egress filter cannot read an address", true);
      }
      this.#denied.set(purpose, (this.#denied.get(purpose) ?? 0) + 1);
      this.#tellDenial(purpose, host, address);
      throw new EgressError("ssrf_denied", "The egress filter denies an address of the host", true);
    }
  }

  /** At most once a second for each host and purpose: callouts may run for every request. */
  #tellDenial(purpose: EgressPurpose, host: string, address: string): void {
    const key = `${purpose} ${host}`;
    const reported = this.#reported.get(key) ?? { atMs: Number.NEGATIVE_INFINITY, count: 0 };
    this.#reported.set(key, reported);
    reported.count += 1;
    const nowMs = performance.now();
    if (nowMs - reported.atMs < REPEAT_MS) return;
    const facts = { code: "ssrf_denied", purpose, host, address, connections: reported.count };
    this.#log.warn(facts, "The egress filter denies a connection");
    reported.atMs = nowMs;
    reported.count = 0;
  }

  async #secure(raw: Socket, { host, roots }: DialTarget, signal: AbortSignal): Promise<Socket> {
    const name = host.endsWith(".") ? host.slice(0, -1) : host;
    const isAddress = parseAddress(name) !== undefined;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const socket = connect({
      socket: raw,
      // Server Name Indication has no addresses (RFC 6066 section 3).
      servername: isAddress ? "" : name,
      secureContext: this.#contextOf(roots ?? this.#roots ?? publicRoots),
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: true,
      checkServerIdentity: (_name, certificate) => checkServerIdentity(name, certificate),
    });
    const onAbort = (): void => reject(timedOut());
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    // Stays on abandoned sockets: their late errors must not end the process.
    raw.on("error", reject);
    raw.once("close", () => reject(new EgressError("tls_failed", "The connection ended during the TLS handshake")));
    socket.on("error", reject);
    socket.once("secureConnect", () => resolve(undefined));
    try {
      await promise;
      socket.off("error", reject);
      return socket;
    } catch (error) {
      socket.destroy();
      throw asEgressError(error, "tls_failed");
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #contextOf(roots: readonly string[]): SecureContext {
    let context = this.#contexts.get(roots);
    if (context === undefined) {
      context = createSecureContext({ ca: [...roots], minVersion: "TLSv1.2" });
      this.#contexts.set(roots, context);
    }
    return context;
  }
}

/** Resolves all addresses of a name; rejects or returns none if there are none. */
export type NameLookup = (host: string) => Promise<readonly string[]>;

/**
 * Shares pending lookups of a name. The system's lookup cannot be cancelled and occupies a pool thread until it ends,
 * so a name with unresponsive servers must not occupy more than one.
 */
function oneAtATime(find: NameLookup): NameLookup {
  const running = new Map<string, Promise<readonly string[]>>();
  return async (host) => {
    const present = running.get(host);
    if (present !== undefined) return await present;
    const started = find(host).finally(() => running.delete(host));
    running.set(host, started);
    return await started;
  };
}
