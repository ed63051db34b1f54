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
    const busy = new Float64Array(shard.size);
    let count = 0;
    for (const [key, moments] of shard) {
      const fullAtMs = latest(moments);
      if (fullAtMs <= nowMs) shard.delete(key);
      else busy[count++] = fullAtMs;
    }
    // With a few idle ones gone, the next new key would have to look at all of them again.
    if (count <= SHARD_KEYS * 0.75) return;
    let excess = count - SHARD_KEYS / 2;
    this.#evictions += excess;
    const bar = busy.subarray(0, count).sort()[excess - 1] ?? 0;
    for (const [key, moments] of shard) {
      if (latest(moments) > bar) continue;
      shard.delete(key);
      excess -= 1;
      if (excess === 0) break;
    }
  }
}

function latest(moments: readonly number[]): number {
  let latestMs = 0;
  for (const moment of moments) if (moment > latestMs) latestMs = moment;
  return latestMs;
}

function shardOf(key: string): number {
  let hash = 0;
  for (let at = 0; at < key.length; at += 1) hash = (Math.imul(hash, 31) + key.charCodeAt(at)) | 0;
  return (hash ^ (hash >>> 16)) & (SHARDS - 1);
}
