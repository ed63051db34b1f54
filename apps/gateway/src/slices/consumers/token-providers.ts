import type { JwtProvider } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { parseEgressUrl } from "#egress/egress-url.ts";
import type { Clock } from "#slice.ts";
import { KeySet, type KeySetRules } from "./key-set.ts";
import { fetchPublished } from "./published-fetch.ts";
import type { TokenProvider } from "./token-verifier.ts";

export interface TokenProviderTools {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
}

interface KnownKeySet {
  readonly source: string;
  readonly keys: KeySet;
}

const DEFAULT_REFRESH_S = 300;
const DEFAULT_GRACE_S = 86_400;

/** Keeps key sets over generations, so that a reload fetches nothing that is known. */
export class TokenProviders {
  readonly #tools: TokenProviderTools;
  #running: ReadonlyMap<string, KnownKeySet> = new Map();

  constructor(tools: TokenProviderTools) {
    this.#tools = tools;
  }

  /**
   * The providers of a candidate. Keys that are known from the same place are taken over; `published` makes the
   * candidate the one to take from.
   */
  prepare(
    documents: readonly JwtProvider[],
    readFile: (path: string) => Buffer,
  ): { readonly providers: readonly TokenProvider[]; readonly published: () => void } {
    const prepared = new Map<string, KnownKeySet>();
    const adopted: (() => void)[] = [];
    const providers = documents.map((document): TokenProvider => {
      const roots =
        document.trusted_ca_file === undefined ? undefined : [readFile(document.trusted_ca_file).toString()];
      const source = JSON.stringify([document.jwks_url, roots]);
      const known = this.#running.get(document.name);
      const rules = rulesOf(document);
      const isSame = known?.source === source;
      const keys = isSame ? known.keys : this.#keySet(document, roots, rules);
      prepared.set(document.name, { source, keys });
      adopted.push(() => (keys.rules = rules));
      return { document, keys };
    });
    return {
      providers,
      published: () => {
        this.#running = prepared;
        for (const adopt of adopted) adopt();
      },
    };
  }

  #keySet(document: JwtProvider, roots: readonly string[] | undefined, rules: KeySetRules): KeySet {
    const { dialer, clock, log } = this.#tools;
    const url = parseEgressUrl(document.jwks_url);
    if ("issue" in url) throw new Error(`The jwks_url of ${document.name} was not checked`);
    return new KeySet({
      rules,
      clock,
      log,
      fetch: async (signal) => await fetchPublished(dialer, { url, roots, purpose: "key-set" }, signal),
    });
  }
}

function rulesOf(document: JwtProvider): KeySetRules {
  return {
    provider: document.name,
    refreshMs: (document.refresh_secs ?? DEFAULT_REFRESH_S) * 1000,
    retiredGraceMs: (document.retired_key_grace_secs ?? DEFAULT_GRACE_S) * 1000,
  };
}
