import type { captureOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createCaptureOperations } from "./capture.operations.ts";
import { RemovalWatch } from "./removal-watch.ts";

/** Capture mode and statistics. */
export function createCaptureSlice(host: SliceHost): Slice<typeof captureOperations> {
  const removals = new RemovalWatch(host);
  return { name: "capture", operations: createCaptureOperations(host, removals) };
}
