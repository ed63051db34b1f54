import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { StartupError } from "./startup-error.ts";

export interface LogPathSources {
  /** Value of `--log-path`. */
  readonly flag: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly dataDir: string;
}

/**
 * The file of the log: `--log-path`, `WEIR_LOG_PATH` (or `SERVICE_LOG_PATH`), or its place in the data directory. It is no
 * setting, because whoever may change settings over the API must not choose files of this machine to be written. Throws
 * {@link StartupError} for what can be no file.
 */
export function resolveLogPath({ flag, environment, dataDir }: LogPathSources): string {
  const [source, chosen] =
    flag === undefined
      ? ["WEIR_LOG_PATH", environment["WEIR_LOG_PATH"] ?? environment["SERVICE_LOG_PATH"] ?? ""]
      : ["--log-path", flag];
  if (chosen === "" && flag === undefined) return defaultLogPath(dataDir);
  if (chosen === "" || /[\\/]$/.test(chosen) || isDirectory(chosen)) {
    throw new StartupError(`${source} must name a file; ${JSON.stringify(chosen)} is none`);
  }
  return resolve(chosen);
}

/** Where the log lies if nobody says otherwise. */
export function defaultLogPath(dataDir: string): string {
  return join(dataDir, "logs", "weir.log");
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
