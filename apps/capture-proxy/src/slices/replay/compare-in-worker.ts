import { Worker } from "node:worker_threads";
import type { DiffOptions, EntryDiff } from "@headworks/capture-contract";
import type { DiffSide, SideBody } from "@headworks/entry-diff";
import { readJson } from "@headworks/exact-json";
import type { Clock } from "#slice.ts";
import { compareEntriesNow } from "./compare-entries-now.ts";

/** Up to this many characters of text a comparison is over before anybody notices. */
const SMALL_CHARACTERS = 131_072;
const MAX_MS = 10_000;
const MAX_HEAP_MB = 512;

/** What the thread is given. */
export interface Comparison {
  readonly left: DiffSide;
  readonly right: DiffSide;
  readonly options: DiffOptions;
}

/**
 * Compares two sides; large bodies on a thread of their own, so that traffic goes on meanwhile. What takes longer than
 * 10 s, or more memory than is good, is compared by its bytes.
 */
export async function compareInWorker(clock: Clock, comparison: Comparison): Promise<EntryDiff> {
  const { left, right, options } = comparison;
  const bodies = [left.requestBody, left.responseBody, right.requestBody, right.responseBody];
  const characters = bodies.reduce((sum, body) => sum + (body.kind === "text" ? body.text.length : 0), 0);
  if (characters <= SMALL_CHARACTERS) return compareEntriesNow(comparison);
  const text = await onThread(clock, comparison);
  if (text === undefined) return compareEntriesNow({ left: byBytes(left), right: byBytes(right), options });
  return readJson(text) as unknown as EntryDiff;
}

/** The result as JSON text, which keeps long numbers; undefined when it was too much. */
async function onThread(clock: Clock, comparison: Comparison): Promise<string | undefined> {
  const thread = begin(comparison);
  if (thread === undefined) return undefined;
  let stopTimer = (): void => undefined;
  const result = await new Promise<string | undefined>((resolve) => {
    stopTimer = clock.after(MAX_MS, () => resolve(undefined));
    thread.once("message", (text: string) => resolve(text));
    thread.once("error", () => resolve(undefined));
    thread.once("exit", () => resolve(undefined));
  });
  stopTimer();
  await thread.terminate();
  return result;
}

/** Undefined where the system gives no thread, which the constructor throws. */
function begin(comparison: Comparison): Worker | undefined {
  try {
    return new Worker(new URL("./compare-thread.ts", import.meta.url), {
      workerData: comparison,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
  } catch {
    return undefined;
  }
}

function byBytes(side: DiffSide): DiffSide {
  const asBytes = (body: SideBody): SideBody =>
    body.kind === "text" ? { kind: "binary", sizeBytes: body.sizeBytes, sha256: body.sha256, bytes: body.text } : body;
  return { ...side, requestBody: asBytes(side.requestBody), responseBody: asBytes(side.responseBody) };
}
