import type { Clock } from "#slice.ts";
import type { IssuedCredential } from "#storage/state-store.ts";
import { isSameDigest, selectorOf } from "./credential-digest.ts";

/** Keys issued through the admin API, in memory, so that requests never wait for the store. */
export class IssuedKeys {
  readonly #clock: Pick<Clock, "now">;
  readonly #subscribers: (() => Promise<void>)[] = [];
  #all: readonly IssuedCredential[] = [];
  #byDigest: ReadonlyMap<string, IssuedCredential> = new Map();

  constructor(clock: Pick<Clock, "now">, credentials: readonly IssuedCredential[] = []) {
    this.#clock = clock;
    this.#keep(credentials);
  }

  /** Oldest first; a new array after each change. */
  get all(): readonly IssuedCredential[] {
    return this.#all;
  }

  /** The consumer of a valid key. */
  ownerOf(digest: Uint8Array): string | undefined {
    if (this.#byDigest.size === 0) return undefined;
    const known = this.#byDigest.get(selectorOf(digest));
    if (known === undefined || !isSameDigest(known.digest, digest)) return undefined;
    return known.retireMs !== undefined && this.#clock.now() >= known.retireMs ? undefined : known.consumer;
  }

  /** Replaces all keys; resolves when all followers have them. */
  async replaceAll(credentials: readonly IssuedCredential[]): Promise<void> {
    this.#keep(credentials);
    await Promise.all(this.#subscribers.map(async (changed) => await changed()));
  }

  /** Registers a callback for changes. */
  follow(changed: () => Promise<void>): void {
    this.#subscribers.push(changed);
  }

  #keep(credentials: readonly IssuedCredential[]): void {
    this.#all = credentials;
    this.#byDigest = new Map(credentials.map((credential) => [selectorOf(credential.digest), credential]));
  }
}
