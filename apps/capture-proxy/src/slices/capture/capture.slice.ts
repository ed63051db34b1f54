import type { captureOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createCaptureOperations } from "./capture.operations.ts";
import { RemovalWatch } from "./removal-watch.ts";

/** Recording or passing through, and what is stored. */
export function createCaptureSlice(host: SliceHost): Slice<typeof captureOperations> {
  const removals = new RemovalWatch(host);
  return { name: "capture", operations: createCaptureOperations(host, removals) };
}
