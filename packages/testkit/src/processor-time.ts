/** Systems count processor time in steps of some milliseconds. */
const MIN_MEASURED_MS = 60;

/**
 * Milliseconds of processor time that this thread needs for `work`, averaged over as many runs as it takes to tell.
 * Unlike time by the clock it does not grow when other processes have the processor, so that a test may compare how
 * costs grow.
 */
export function processorMs(work: () => void): number {
  const before = process.threadCpuUsage();
  for (let runs = 1; ; runs += 1) {
    work();
    const { user, system } = process.threadCpuUsage(before);
    const soFarMs = (user + system) / 1000;
    if (soFarMs >= MIN_MEASURED_MS) return soFarMs / runs;
  }
}
