import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** CPU time that a process and its descendants have used since they started, in microseconds. */
export interface ProcessorTime {
  readonly totalUs: number;
  /** CPU time of the process's first thread. */
  readonly mainThreadUs: number;
}

const tickUs = 1_000_000 / Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

/** `/proc/<pid>/stat` after the command name, which may contain spaces and parentheses: begins with field 3. */
function statFields(path: string): string[] {
  const text = readFileSync(path, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

const ticks = (fields: readonly string[], from: number, to: number): number =>
  fields.slice(from - 3, to - 2).reduce((sum, field) => sum + Number(field), 0);

/** The process and its running descendants. */
export function processTree(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      parents.set(Number(name), Number(statFields(`/proc/${name}/stat`)[1]));
    } catch {
      // The process ended after the listing.
    }
  }
  const tree = [pid];
  for (const member of tree) {
    for (const [child, parent] of parents) if (parent === member) tree.push(child);
  }
  return tree;
}

/** User and system time from `/proc`; ended children are included in their parents' (fields 16 and 17). */
export function processorTime(pid: number): ProcessorTime {
  let totalTicks = 0;
  for (const member of processTree(pid)) {
    try {
      totalTicks += ticks(statFields(`/proc/${member}/stat`), 14, 17);
    } catch {
      // A short-lived child, included in its parent's time.
    }
  }
  return {
    totalUs: totalTicks * tickUs,
    mainThreadUs: ticks(statFields(`/proc/${pid}/task/${pid}/stat`), 14, 15) * tickUs,
  };
}

/** Waits until deferred work is done: at most one clock tick in 300 ms, or `limitMs` have passed. */
export async function untilQuiet(pid: number, limitMs = 5000): Promise<void> {
  const endMs = performance.now() + limitMs;
  let before = processorTime(pid).totalUs;
  while (performance.now() < endMs) {
    await sleep(300);
    const now = processorTime(pid).totalUs;
    if (now - before <= tickUs) return;
    before = now;
  }
}

/** Memory of a process and its descendants, in MB: currently resident, and the peak of the process alone. */
export function residentMb(pid: number): { readonly nowMb: number; readonly peakMb: number } {
  const read = (member: number, name: string): number => {
    try {
      const status = readFileSync(`/proc/${member}/status`, "utf8");
      return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0) / 1024;
    } catch {
      return 0;
    }
  };
  return {
    nowMb: processTree(pid).reduce((sum, member) => sum + read(member, "VmRSS"), 0),
    peakMb: read(pid, "VmHWM"),
  };
}
