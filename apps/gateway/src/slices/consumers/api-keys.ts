// Tested by ../../../test/consumers/api-keys.test.ts
import type { Secret } from "@headworks/contract-kit";
import type { Consumer } from "@headworks/gateway-contract";
import type { ConsumerIdentity } from "#request/context.ts";
import type { Clock } from "#slice.ts";
import { credentialsOf, identityOf } from "./consumer-identity.ts";
import { validityOf, type IsValid } from "./validity.ts";
import { digestOfText, digestOfWire, isSameDigest } from "./credential-digest.ts";

interface KnownKey {
  readonly digest: Buffer;
  readonly identity: ConsumerIdentity;
  readonly isValid: IsValid;
}

/** The API keys of a generation. Keeps only their SHA-256. */
export class ApiKeys {
  readonly #byDigest = new Map<string, KnownKey>();

  constructor(consumers: readonly Consumer[], secret: (text: string) => Secret, clock: Clock) {
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
    const digest = digestOfWire(key);
    // A client cannot choose the digest of a key it does not know, so how long the search takes tells it nothing.
    const known = this.#byDigest.get(selectorOf(digest));
    if (known === undefined || !isSameDigest(known.digest, digest)) return undefined;
    return known.isValid?.() === false ? undefined : known.identity;
  }
}

function selectorOf(digest: Buffer): string {
  return digest.toString("latin1");
}
