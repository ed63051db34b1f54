import type { Secret } from "@headworks/contract-kit";
import type { Consumer } from "@headworks/gateway-contract";
import { ownText } from "@headworks/http1";
import type { ConsumerIdentity } from "#request/context.ts";
import type { Clock } from "#slice.ts";
import { credentialsOf, identityOf } from "./consumer-identity.ts";
import { validityOf, type IsValid } from "./validity.ts";
import { digestOfText, digestOfWire, isSameDigest, selectorOf } from "./credential-digest.ts";
import { IssuedKeys } from "./issued-keys.ts";

interface KnownKey {
  readonly digest: Buffer;
  readonly identity: ConsumerIdentity;
  readonly isValid: IsValid;
}

/** Keys that came lately and were good; most requests of a moment carry the same few. */
const MAX_RECENT = 1024;

/**
 * The API keys of a generation, and those that were given out beside its document. Keeps their SHA-256, and of a few that
 * clients sent lately the text, so that not every request costs a digest.
 */
export class ApiKeys {
  readonly #byDigest = new Map<string, KnownKey>();
  readonly #recent = new Map<string, KnownKey>();
  readonly #issued: IssuedKeys;
  /** Of the consumers of this generation: a key of one that left the document opens nothing. */
  readonly #byName = new Map<string, ConsumerIdentity>();

  constructor(
    consumers: readonly Consumer[],
    secret: (text: string) => Secret,
    clock: Clock,
    issued = new IssuedKeys(clock),
  ) {
    this.#issued = issued;
    for (const consumer of consumers) this.#byName.set(consumer.name, identityOf(consumer, "api_key"));
    for (const { consumer, credential } of credentialsOf(consumers, "api_key")) {
      const digest = digestOfText(secret(credential.key).reveal());
      const identity = identityOf(consumer, "api_key");
      this.#byDigest.set(selectorOf(digest), { digest, identity, isValid: validityOf(credential, clock) });
    }
  }

  get size(): number {
    return this.#byDigest.size;
  }

  /** Whose key it is; undefined for a key that nobody has now. `key` is a field value, one byte in each character. */
  find(key: string): ConsumerIdentity | undefined {
    const recent = this.#recent.get(key);
    if (recent !== undefined) return recent.isValid?.() === false ? undefined : recent.identity;
    const digest = digestOfWire(key);
    // A client cannot choose the digest of a key it does not know, so how long the search takes tells it nothing.
    const known = this.#byDigest.get(selectorOf(digest));
    if (known === undefined || !isSameDigest(known.digest, digest)) return this.#findIssued(digest);
    if (this.#recent.size >= MAX_RECENT) this.#recent.clear();
    this.#recent.set(ownText(key), known);
    return known.isValid?.() === false ? undefined : known.identity;
  }

  /** Whether it is a key of the document, good at this moment or not. */
  knows(key: string): boolean {
    return this.#byDigest.has(selectorOf(digestOfText(key)));
  }

  #findIssued(digest: Buffer): ConsumerIdentity | undefined {
    const owner = this.#issued.ownerOf(digest);
    return owner === undefined ? undefined : this.#byName.get(owner);
  }
}
