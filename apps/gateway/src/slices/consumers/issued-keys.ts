import type { Clock } from "#slice.ts";
import type { IssuedCredential } from "#storage/state-store.ts";
import { isSameDigest, selectorOf } from "./credential-digest.ts";

/** Keys that were given out over the admin API, in memory: what is looked up for requests never waits for the store. */
export class IssuedKeys {
  readonly #clock: Pick<Clock, "now">;
  readonly #subscribers: (() => Promise<void>)[] = [];
  #all: readonly IssuedCredential[] = [];
  #byDigest: ReadonlyMap<string, IssuedCredential> = new Map();

  constructor(clock: Pick<Clock, "now">, credentials: readonly IssuedCredential[] = []) {
    this.#clock = clock;
    this.#keep(credentials);
  }

  /** Oldest first; another list after each change. */
  get all(): readonly IssuedCredential[] {
    return this.#all;
  }

  /** Name of the consumer that a key was given to; undefined for a key that nobody has now. */
  ownerOf(digest: Uint8Array): string | undefined {
    if (this.#byDigest.size === 0) return undefined;
    const known = this.#byDigest.get(selectorOf(digest));
    if (known === undefined || !isSameDigest(known.digest, digest)) return undefined;
    return known.retireMs !== undefined && this.#clock.now() >= known.retireMs ? undefined : known.consumer;
  }

  /** These are all keys from now on; resolves when all who follow know it. */
  async replaceAll(credentials: readonly IssuedCredential[]): Promise<void> {
    this.#keep(credentials);
    await Promise.all(this.#subscribers.map(async (changed) => await changed()));
  }

  /** Calls back after each change. */
  follow(changed: () => Promise<void>): void {
    this.#subscribers.push(changed);
  }

  #keep(credentials: readonly IssuedCredential[]): void {
    this.#all = credentials;
    this.#byDigest = new Map(credentials.map((credential) => [selectorOf(credential.digest), credential]));
  }
}
