import {
  DEFAULT_BUFFERED_BYTES,
  DEFAULT_CONNECTION_CAP,
  DEFAULT_MAX_PENDING,
  type ConfigDocument,
} from "@headworks/gateway-contract";

/** One worker of several; `worker` counts from 0. */
export interface WorkerPlace {
  readonly worker: number;
  readonly workers: number;
}

/**
 * The part of a limit that one worker has: the parts add up to the limit. A limit below the number of workers leaves one
 * to each, since a worker without any would refuse everything; 0 stays 0.
 */
export function partOf(total: number, { worker, workers }: WorkerPlace): number {
  if (total <= 0 || !Number.isFinite(total)) return total;
  return Math.max(1, Math.floor(total / workers) + (worker < total % workers ? 1 : 0));
}

/**
 * The document as one of several workers runs it: requests and connections that may be there at a time, and places in
 * the queues for them, are its part of what the document says. Everything else is the same in all.
 */
export function divideLimits(document: ConfigDocument, place: WorkerPlace): ConfigDocument {
  const { max_concurrent_requests: most, admission_queue: queue } = document.gateway;
  return {
    ...document,
    gateway: {
      ...document.gateway,
      max_buffered_bytes: partOf(document.gateway.max_buffered_bytes ?? DEFAULT_BUFFERED_BYTES, place),
      ...(most === undefined ? {} : { max_concurrent_requests: partOf(most, place) }),
      ...(queue?.max_queue_size === undefined
        ? {}
        : { admission_queue: { ...queue, max_queue_size: partOf(queue.max_queue_size, place) } }),
    },
    upstreams: document.upstreams.map((upstream) => ({
      ...upstream,
      connection_cap: partOf(upstream.connection_cap ?? DEFAULT_CONNECTION_CAP, place),
      ...(upstream.stalled_connection_cap === undefined
        ? {}
        : { stalled_connection_cap: partOf(upstream.stalled_connection_cap, place) }),
      max_pending: partOf(upstream.max_pending ?? DEFAULT_MAX_PENDING, place),
    })),
  };
}
