import type { SliceHost } from "#slice.ts";

/** Counts entries pruned by limits and notifies clients when pruning starts. */
export class RemovalWatch {
  readonly #host: Pick<SliceHost, "events" | "log" | "settings" | "store">;
  #count = 0;
  /** Session and limits of the last notice. */
  #saidFor = "";

  constructor(host: Pick<SliceHost, "events" | "log" | "settings" | "store">) {
    this.#host = host;
    host.store.on("pruned", (ids, countForSize) => this.#removed(ids.length, countForSize));
  }

  get count(): number {
    return this.#count;
  }

  #removed(count: number, countForSize: number): void {
    this.#count += count;
    const { events, log, settings, store } = this.#host;
    const { max_requests: maxRequests, max_total_size_mb: maxMb } = settings.running;
    const isForSize = countForSize === count;
    const now = isForSize ? `size ${maxMb}` : `entries ${maxRequests} ${store.activeSessionId}`;
    if (now === this.#saidFor) return;
    this.#saidFor = now;
    const limit = isForSize
      ? `Stored bodies have reached max_total_size_mb (${maxMb} MiB)`
      : `The session has reached max_requests (${new Intl.NumberFormat("en-US").format(maxRequests)} entries)`;
    const message = `${limit}: the oldest entries are removed as new ones come. Raise the limit, or export what you want to keep`;
    log.warn(message);
    events.notice({ code: "entries-removed", message });
  }
}
