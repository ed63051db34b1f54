import { hash, randomBytes } from "node:crypto";
import type { Service, Upstream } from "@headworks/gateway-contract";
import type { UpstreamChoice, UpstreamGroup } from "./upstream-group.ts";
import { compileUpstreamHost } from "./upstream-host.ts";

/** An upstream of the document with its state, which outlives generations. */
export interface CompiledUpstream {
  readonly document: Upstream;
  readonly group: UpstreamGroup;
}

/** Inputs of a split. */
export interface SplitKey {
  readonly requestId: string;
  cookie(name: string): string | undefined;
}

const DEFAULT_TTL_S = 3600;

/**
 * Compiles the choice of an upstream for a request of the service. A split is a weighted hash of the sticky cookie if
 * the service has one, so that a client stays, else of the request id. Throws for an unknown upstream: validation
 * refuses such documents.
 */
export function compileService(
  service: Service,
  upstream: (name: string) => CompiledUpstream,
): (key: SplitKey) => UpstreamChoice {
  const destinationOf = (name: string): Pick<UpstreamChoice, "group" | "host"> => {
    const { document, group } = upstream(name);
    return { group, host: compileUpstreamHost(service.upstream_host ?? document.upstream_host) };
  };
  if (service.upstream !== undefined) {
    const choice = { ...destinationOf(service.upstream), setCookie: undefined };
    return () => choice;
  }
  const targets = (service.split?.targets ?? []).map(({ upstream: name, weight }) => ({
    destination: destinationOf(name),
    weight: weight ?? 1,
  }));
  const total = targets.reduce((sum, { weight }) => sum + weight, 0);
  const { sticky } = service;
  return (key) => {
    const sent = sticky === undefined ? undefined : key.cookie(sticky.cookie);
    const text = sent ?? (sticky === undefined ? key.requestId : randomBytes(12).toString("base64url"));
    const destination = weighted(targets, Math.floor(shareOf(text) * total));
    const setCookie =
      sticky === undefined || sent !== undefined
        ? undefined
        : `${sticky.cookie}=${text}; Path=/; Max-Age=${sticky.ttl_s ?? DEFAULT_TTL_S}; HttpOnly; SameSite=Lax`;
    return { ...destination, setCookie };
  };
}

function weighted(
  targets: readonly { readonly destination: Pick<UpstreamChoice, "group" | "host">; readonly weight: number }[],
  share: number,
): Pick<UpstreamChoice, "group" | "host"> {
  let behind = share;
  for (const { destination, weight } of targets) {
    if (behind < weight) return destination;
    behind -= weight;
  }
  throw new RangeError("A split needs a target with a weight");
}

/** A stable hash of the text in [0, 1). */
function shareOf(text: string): number {
  return Number.parseInt(hash("sha256", text).slice(0, 8), 16) / 4_294_967_296;
}
