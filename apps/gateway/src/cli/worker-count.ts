import { InvalidArgumentError } from "commander";

const MAX_WORKERS = 256;

/** A number of processes from its text, for an option; throws the error of options for anything else. */
export function workerCount(text: string): number {
  const workers = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (workers >= 1 && workers <= MAX_WORKERS) return workers;
  throw new InvalidArgumentError(`It must be a number of processes, 1 to ${MAX_WORKERS}.`);
}
