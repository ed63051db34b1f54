import type { streamsOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createStreamsObserver } from "./streams.observer.ts";
import { createStreamsOperations } from "./streams.operations.ts";

/** Streams of all kinds in the API, and the frames of server-sent events and JSON streams. */
export function createStreamsSlice(host: SliceHost): Slice<typeof streamsOperations> {
  return { name: "streams", operations: createStreamsOperations(host), observer: createStreamsObserver(host) };
}
