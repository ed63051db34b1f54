import { statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, posix, resolve, sep, win32 } from "node:path";
import { canonicalPath } from "@headworks/files";
import { StartupError } from "./settings.ts";

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

/** The first of these environment variables that is set; an empty one counts as unset, as the XDG specification has it. */
export function setVariable(
  environment: Readonly<Record<string, string | undefined>>,
  ...names: readonly string[]
): { readonly name: string; readonly value: string } | undefined {
  for (const name of names) {
    const value = environment[name] ?? "";
    if (value !== "") return { name, value };
  }
  return undefined;
}

export interface DataDirSources {
  /** Value of `--data-dir`. */
  readonly flag: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly homeDir: string;
}

/**
 * Where this user's data lives: the flag, `WEIR_DATA_DIR` (or `SERVICE_DATA_DIR`), or the platform's place for such:
 * `$XDG_DATA_HOME/weir` or `~/.local/share/weir`, `~/Library/Application Support/weir`, `%LOCALAPPDATA%\weir`.
 */
export function resolveDataDir(sources: DataDirSources): string {
  const { flag, environment, platform, homeDir } = sources;
  const chosen = flag ?? setVariable(environment, "WEIR_DATA_DIR", "SERVICE_DATA_DIR")?.value;
  if (chosen !== undefined) return resolve(chosen);
  if (platform === "win32") {
    return win32.join(
      setVariable(environment, "LOCALAPPDATA", "APPDATA")?.value ?? win32.join(homeDir, "AppData", "Local"),
      "weir",
    );
  }
  if (platform === "darwin") return posix.join(homeDir, "Library", "Application Support", "weir");
  const xdg = environment["XDG_DATA_HOME"];
  // The XDG specification says to ignore relative paths.
  return posix.join(xdg !== undefined && isAbsolute(xdg) ? xdg : posix.join(homeDir, ".local", "share"), "weir");
}

/** Where the files of a Weir lie. */
export interface OwnPlaces extends DataPlaces {
  readonly dataDir: string;
}

/** What is made in the data directory, besides what {@link DataPlaces} names. */
const DIRECTORIES = ["backups", "bodies", "certs", "decoded", "logs"];
const FILES = ["config.json", "saved-rules.json", "traffic.db", "weir.db", "weir.lock"];

/** Directories of those that are emptied at a start: what others put there would go. */
const EMPTIED = ["bodies", "decoded"];

/**
 * Why snapshots must not be written to a directory: it would stand in the place of a file of Weir's, or they would not last.
 * Anywhere else they may lie, the data directory included: their names are none that Weir uses otherwise.
 */
export function snapshotProblem(directory: string, own: OwnPlaces): string | undefined {
  const output = reached(directory);
  if (output === undefined) return undefined;
  const emptied = EMPTIED.map((name) => join(own.dataDir, name)).find((place) =>
    isWithin(output, reached(place) ?? place),
  );
  const used = emptied ?? fileInTheWay(output, own);
  return used === undefined ? undefined : `must not lie in ${used}, which Weir keeps for itself`;
}

/**
 * Why a file that somebody asks for must not be written to a path: it would be written over one of Weir's own, which are
 * `files` and those of the places.
 */
export function fileProblem(path: string, own: OwnPlaces, files: readonly string[]): string | undefined {
  const output = reached(path);
  if (output === undefined) return undefined;
  const used = files.find((file) => reached(file) === output) ?? fileInTheWay(output, own);
  return used === undefined ? undefined : `must not be written over ${used}, which Weir keeps for itself`;
}

function fileInTheWay(output: string, { dataDir, trafficFile, logFile }: OwnPlaces): string | undefined {
  const trafficPlace = reached(trafficFile) ?? trafficFile;
  const files = [...FILES.map((name) => join(dataDir, name)), trafficFile, trafficPlace, logFile];
  return files.find((file) => isBeside(output, join(reached(dirname(file)) ?? dirname(file), basename(file))));
}

/**
 * Why files named after traffic must not be written to a directory: whoever answers a request could replace the CA, the
 * settings or the database. Undefined for a directory that Weir does not use, such as others in the data directory, and for
 * one of which the file system does not say where it leads: nothing can be written there.
 */
export function outputProblem(directory: string, own: OwnPlaces): string | undefined {
  const output = reached(directory);
  if (output === undefined) return undefined;
  const { dataDir, certificateDirectory, trafficFile, logFile } = own;
  const trafficPlace = reached(trafficFile) ?? trafficFile;
  const holders = [dataDir, certificateDirectory, ...[trafficFile, trafficPlace, logFile].map((file) => dirname(file))];
  const held = holders.find((place) => isWithin(reached(place), output));
  if (held !== undefined) return `must neither be nor contain ${held}, where Weir keeps files of its own`;
  const isAboveData = isWithin(reached(dataDir), reached(certificateDirectory) ?? certificateDirectory);
  const directories = [
    ...DIRECTORIES.map((name) => join(dataDir, name)),
    ...(isAboveData ? [] : [certificateDirectory]),
  ];
  const files = [...FILES.map((name) => join(dataDir, name)), trafficFile, trafficPlace, logFile];
  const used =
    directories.find((place) => isWithin(output, reached(place) ?? place)) ??
    files.find((file) => isBeside(output, join(reached(dirname(file)) ?? dirname(file), basename(file))));
  return used === undefined ? undefined : `must not lie in ${used}, which Weir keeps for itself`;
}

function reached(path: string): string | undefined {
  try {
    return canonicalPath(path);
  } catch {
    return undefined;
  }
}

function isWithin(inner: string | undefined, outer: string): boolean {
  return inner === outer || inner?.startsWith(outer.endsWith(sep) ? outer : outer + sep) === true;
}

/** A file, and what is called after it: `traffic.db-bodies`, `traffic.db.index`. */
function isBeside(place: string, file: string): boolean {
  return place === file || [sep, "-", "."].some((mark) => place.startsWith(file + mark));
}
