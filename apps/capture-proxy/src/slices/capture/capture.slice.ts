import type { CaptureStats, CaptureStatus, Settings, captureOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import type { Slice, SliceHost } from "#slice.ts";

/** Capture mode and statistics. */
export function createCaptureSlice(host: SliceHost): Slice<typeof captureOperations> {
  const removals = new RemovalWatch(host);
  return { name: "capture", operations: createCaptureOperations(host, removals) };
}

const MEBIBYTE = 1_048_576;

/** The mode is a setting, so that it survives a restart. */
function createCaptureOperations(
  host: Pick<SliceHost, "settings" | "store" | "events">,
  removals: RemovalWatch,
): Handlers<typeof captureOperations> {
  const { settings, store, events } = host;
  return {
    getCapture: () => ({ status: 200, body: captureStatus(settings.running) }),
    toggleCapture: ({ body }) => {
      const enabled = body?.enabled ?? !settings.running.capture_enabled;
      if (enabled !== settings.running.capture_enabled) {
        settings.patch({ capture_enabled: enabled });
        events.changed("capture");
      }
      return { status: 200, body: captureStatus(settings.running) };
    },
    getCaptureStats: () => ({ status: 200, body: captureStats(settings.running, store.status(), removals.count) }),
  };
}

function captureStatus({ capture_enabled }: Settings): CaptureStatus {
  return { capture_enabled, mode: capture_enabled ? "recording" : "passthrough" };
}

function captureStats(
  settings: Settings,
  status: ReturnType<SliceHost["store"]["status"]>,
  entriesRemoved: number,
): CaptureStats {
  return {
    entry_count: status.entryCount,
    max_entries: settings.max_requests,
    total_size_bytes: status.totalSizeBytes,
    max_total_size_bytes: (settings.max_total_size_mb ?? 0) * MEBIBYTE,
    max_body_size: settings.max_body_size,
    capture_enabled: settings.capture_enabled,
    capture_request_bodies: settings.capture_request_bodies,
    capture_response_bodies: settings.capture_response_bodies,
    ignored_domains: [...settings.ignored_domains],
    store_size_bytes: status.storeSizeBytes,
    bodies_not_stored: status.bodiesNotStored,
    entries_removed: entriesRemoved,
    entries_lost: status.entriesLost,
    storage_ok: status.ok,
    storage_problem: status.problem,
  };
}

/** Counts entries pruned by limits and notifies clients when pruning starts. */
class RemovalWatch {
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
