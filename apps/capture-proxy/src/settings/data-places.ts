import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { setVariable } from "./set-variable.ts";
import { StartupError } from "./startup-error.ts";

/** What a user may keep elsewhere than in the data directory. */
export interface DataPlaces {
  /** The log. */
  readonly logFile: string;
  /** The database of the captured traffic; its bodies lie beside it. */
  readonly trafficFile: string;
  /** The directory of the CA's certificate and key. */
  readonly certificateDirectory: string;
}

export interface DataPlaceSources {
  /** Values of the flags. */
  readonly flags: { readonly logPath?: string; readonly dbPath?: string; readonly certPath?: string };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly dataDir: string;
}

/** The default locations. */
export function defaultPlaces(dataDir: string): DataPlaces {
  return {
    logFile: join(dataDir, "logs", "weir.log"),
    trafficFile: join(dataDir, "traffic.db"),
    certificateDirectory: join(dataDir, "certs"),
  };
}

/**
 * The places of a start: `--log-path`, `--db-path`, `--cert-path`, or `WEIR_LOG_PATH`, `WEIR_DB_PATH`, `WEIR_CERT_PATH`
 * (also as `SERVICE_…`), or in the data directory. They are no settings, because whoever may change settings over the API
 * must not choose files of this machine to be written. Throws {@link StartupError} for what can be no such place.
 */
export function resolveDataPlaces(sources: DataPlaceSources): DataPlaces {
  const { flags, environment, dataDir } = sources;
  return {
    logFile: chosen("log", "file", flags.logPath, environment) ?? defaultPlaces(dataDir).logFile,
    trafficFile: resolveTrafficFile(sources),
    certificateDirectory: resolveCertificateDirectory(sources),
  };
}

/** As {@link resolveDataPlaces}, of the captured traffic alone: what is wrong elsewhere does not matter. */
export function resolveTrafficFile({ flags, environment, dataDir }: DataPlaceSources): string {
  return chosen("db", "file", flags.dbPath, environment) ?? defaultPlaces(dataDir).trafficFile;
}

/** As {@link resolveDataPlaces}, of the CA alone: what is wrong elsewhere does not matter. */
export function resolveCertificateDirectory({ flags, environment, dataDir }: DataPlaceSources): string {
  return chosen("cert", "directory", flags.certPath, environment) ?? defaultPlaces(dataDir).certificateDirectory;
}

function chosen(
  name: "log" | "db" | "cert",
  kind: "file" | "directory",
  flag: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const variable = `${name.toUpperCase()}_PATH`;
  const given =
    flag === undefined
      ? setVariable(environment, `WEIR_${variable}`, `SERVICE_${variable}`)
      : { name: `--${name}-path`, value: flag };
  if (given === undefined) return undefined;
  const path = given.value;
  if (path === "" || !canBe(kind, path)) {
    throw new StartupError(`${given.name} must name a ${kind}; ${JSON.stringify(path)} is none`);
  }
  return resolve(path);
}

/** What is not there yet can be made. */
function canBe(kind: "file" | "directory", path: string): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  if (kind === "directory") return there?.isDirectory() ?? true;
  return there === undefined ? !/[\\/]$/.test(path) : !there.isDirectory();
}
