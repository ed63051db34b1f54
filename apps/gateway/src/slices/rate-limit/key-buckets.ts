const SHARDS = 16;
/** Keys of one shard: what making room costs is bounded by it. */
export const SHARD_KEYS = 4096;

/**
 * What one rule remembers of its keys: for each window the moment its burst is whole again. Bounded, since clients choose
 * the keys: when a shard is full, keys whose bursts are whole go first, which loses nothing, then the half that is
 * nearest to it.
 */
export class KeyBuckets {
  readonly #windows: number;
  readonly #shards = Array.from({ length: SHARDS }, () => new Map<string, number[]>());
  #evictions = 0;

  constructor(windows: number) {
    this.#windows = windows;
  }

  /** Keys that were forgotten although their bursts were not whole. */
  get evictions(): number {
    return this.#evictions;
  }

  get size(): number {
    return this.#shards.reduce((sum, shard) => sum + shard.size, 0);
  }

  /** The moments of a key, to be changed in place. */
  of(key: string, nowMs: number): number[] {
    const shard = this.#shards[shardOf(key)];
    const known = shard?.get(key);
    if (known !== undefined) return known;
    const fresh = Array.from({ length: this.#windows }, () => 0);
    if (shard === undefined) return fresh;
    if (shard.size >= SHARD_KEYS) this.#makeRoom(shard, nowMs);
    shard.set(key, fresh);
    return fresh;
  }

  #makeRoom(shard: Map<string, number[]>, nowMs: number): void {
    for (const [key, moments] of shard) {
      if (Math.max(...moments) <= nowMs) shard.delete(key);
    }
    // With a few idle ones gone, the next new key would have to look at all of them again.
    if (shard.size <= SHARD_KEYS * 0.75) return;
    const entries = [...shard].map(([key, moments]) => ({ key, fullAtMs: Math.max(...moments) }));
    entries.sort((a, b) => a.fullAtMs - b.fullAtMs);
    for (const { key } of entries.slice(0, entries.length - SHARD_KEYS / 2)) {
      shard.delete(key);
      this.#evictions += 1;
    }
  }
}

function shardOf(key: string): number {
  let hash = 0;
  for (let at = 0; at < key.length; at += 1) hash = (Math.imul(hash, 31) + key.charCodeAt(at)) | 0;
  return (hash ^ (hash >>> 16)) & (SHARDS - 1);
}
