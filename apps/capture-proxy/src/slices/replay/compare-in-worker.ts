import type { DiffOptions, EntryDiff } from "@headworks/capture-contract";
import {
  compareEntries,
  compileHeaderNames,
  compileIgnoredPaths,
  type DiffSide,
  type SideBody,
} from "@headworks/entry-diff";
import { readJson } from "@headworks/json";
import { WorkerFault, WorkerHost } from "@headworks/worker-host";
import type { Clock } from "#slice.ts";

/** Below this many characters a comparison is too short to delay traffic noticeably. */
const SMALL_CHARACTERS = 131_072;
const MAX_MS = 10_000;
const MAX_HEAP_MB = 512;

/** Compares two sides, large bodies in a worker thread; beyond 10 s or the memory by bytes. */
export async function compareInWorker(clock: Clock, comparison: Comparison): Promise<EntryDiff> {
  const { left, right, options } = comparison;
  const bodies = [left.requestBody, left.responseBody, right.requestBody, right.responseBody];
  const characters = bodies.reduce((sum, body) => sum + (body.kind === "text" ? body.text.length : 0), 0);
  if (characters <= SMALL_CHARACTERS) return compareEntriesNow(comparison);
  const text = await onThread(clock, comparison);
  if (text === undefined) return compareEntriesNow({ left: byBytes(left), right: byBytes(right), options });
  return readJson(text) as unknown as EntryDiff;
}

/** The result as JSON text, which keeps the digits of long numbers; undefined beyond the limits. */
async function onThread(clock: Clock, comparison: Comparison): Promise<string | undefined> {
  const host = new WorkerHost<Comparison, string>({
    module: new URL("./compare-thread.ts", import.meta.url),
    name: "weir-compare",
    maxHeapMb: MAX_HEAP_MB,
    clock,
  });
  try {
    return await host.request(comparison, { timeoutMs: MAX_MS });
  } catch (error) {
    if (!(error instanceof WorkerFault)) throw error;
    return undefined;
  } finally {
    await host.close();
  }
}

function byBytes(side: DiffSide): DiffSide {
  const asBytes = (body: SideBody): SideBody =>
    body.kind === "text" ? { kind: "binary", sizeBytes: body.sizeBytes, sha256: body.sha256, bytes: body.text } : body;
  return { ...side, requestBody: asBytes(side.requestBody), responseBody: asBytes(side.responseBody) };
}

export interface Comparison {
  readonly left: DiffSide;
  readonly right: DiffSide;
  readonly options: DiffOptions;
}

/** Requires checked options. */
export function compareEntriesNow({ left, right, options }: Comparison): EntryDiff {
  const compiled = compileIgnoredPaths(options.ignore_paths ?? []);
  if (!compiled.ok) throw new TypeError("The paths to ignore cannot be read");
  return compareEntries(left, right, {
    ignored: compiled.paths,
    shape: options.shape ?? false,
    ignoredHeaders: compileHeaderNames(options.ignore_headers),
  });
}
