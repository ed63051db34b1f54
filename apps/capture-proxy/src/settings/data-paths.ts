import { statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, posix, resolve, sep, win32 } from "node:path";
import { canonicalPath } from "@headworks/files";
import { StartupError } from "./settings.ts";

/** Paths that a user may choose outside of the data directory. */
export interface DataPaths {
  readonly logFile: string;
  /** The database of the captured traffic; its bodies lie beside it. */
  readonly trafficFile: string;
  /** The directory of the CA's certificate and key. */
  readonly certificateDirectory: string;
}

export interface DataPathSources {
  /** Values of the flags. */
  readonly flags: { readonly logPath?: string; readonly dbPath?: string; readonly certPath?: string };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly dataDir: string;
}

export function defaultDataPaths(dataDir: string): DataPaths {
  return {
    logFile: join(dataDir, "logs", "weir.log"),
    trafficFile: join(dataDir, "traffic.db"),
    certificateDirectory: join(dataDir, "certs"),
  };
}

/**
 * The paths of a start: `--log-path`, `--db-path`, `--cert-path`, or `WEIR_LOG_PATH`, `WEIR_DB_PATH`, `WEIR_CERT_PATH`
 * (also as `SERVICE_…`), or in the data directory. They are no settings: a user who may change settings over the API
 * must not choose which files of this machine are written. Throws {@link StartupError} for an unusable path.
 */
export function resolveDataPaths(sources: DataPathSources): DataPaths {
  const { flags, environment, dataDir } = sources;
  return {
    logFile: chosen("log", "file", flags.logPath, environment) ?? defaultDataPaths(dataDir).logFile,
    trafficFile: resolveTrafficFile(sources),
    certificateDirectory: resolveCertificateDirectory(sources),
  };
}

/** As {@link resolveDataPaths}, but only for the captured traffic; other paths are not checked. */
export function resolveTrafficFile({ flags, environment, dataDir }: DataPathSources): string {
  return chosen("db", "file", flags.dbPath, environment) ?? defaultDataPaths(dataDir).trafficFile;
}

/** As {@link resolveDataPaths}, but only for the CA; other paths are not checked. */
export function resolveCertificateDirectory({ flags, environment, dataDir }: DataPathSources): string {
  return chosen("cert", "directory", flags.certPath, environment) ?? defaultDataPaths(dataDir).certificateDirectory;
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

/** A missing path is usable: it is created at the start. */
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
 * The data directory of this user: the flag, `WEIR_DATA_DIR` (or `SERVICE_DATA_DIR`), or the platform's default:
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

/** The paths that Weir itself writes to. */
export interface OwnPaths extends DataPaths {
  readonly dataDir: string;
}

/** Created in the data directory, besides the {@link DataPaths}. */
const DIRECTORIES = ["backups", "bodies", "certs", "decoded", "logs"];
const FILES = ["config.json", "saved-rules.json", "traffic.db", "weir.db", "weir.lock"];

/** Emptied at each start, so foreign files there would be deleted. */
const EMPTIED = ["bodies", "decoded"];

/**
 * Why snapshots must not be written to a directory: it has the path of a file of Weir, or is emptied at a start. Other
 * directories are allowed, the data directory included: Weir uses no file names like those of snapshots.
 */
export function snapshotProblem(directory: string, own: OwnPaths): string | undefined {
  const output = canonical(directory);
  if (output === undefined) return undefined;
  const emptied = EMPTIED.map((name) => join(own.dataDir, name)).find((path) =>
    isWithin(output, canonical(path) ?? path),
  );
  const used = emptied ?? ownFileAt(output, own);
  return used === undefined ? undefined : `must not lie in ${used}, which Weir keeps for itself`;
}

/**
 * Why a requested file must not be written to a path: it would overwrite a file of Weir, one of `files` or of the own
 * paths.
 */
export function fileProblem(path: string, own: OwnPaths, files: readonly string[]): string | undefined {
  const output = canonical(path);
  if (output === undefined) return undefined;
  const used = files.find((file) => canonical(file) === output) ?? ownFileAt(output, own);
  return used === undefined ? undefined : `must not be written over ${used}, which Weir keeps for itself`;
}

function ownFileAt(output: string, { dataDir, trafficFile, logFile }: OwnPaths): string | undefined {
  const trafficTarget = canonical(trafficFile) ?? trafficFile;
  const files = [...FILES.map((name) => join(dataDir, name)), trafficFile, trafficTarget, logFile];
  return files.find((file) => isBeside(output, join(canonical(dirname(file)) ?? dirname(file), basename(file))));
}

/**
 * Why files named after traffic must not be written to a directory: an origin could replace the CA, the settings or the
 * database. Undefined for directories that Weir does not use, such as others in the data directory, and for paths that
 * the file system cannot resolve: nothing can be written there.
 */
export function outputProblem(directory: string, own: OwnPaths): string | undefined {
  const output = canonical(directory);
  if (output === undefined) return undefined;
  const { dataDir, certificateDirectory, trafficFile, logFile } = own;
  const trafficTarget = canonical(trafficFile) ?? trafficFile;
  const holders = [
    dataDir,
    certificateDirectory,
    ...[trafficFile, trafficTarget, logFile].map((file) => dirname(file)),
  ];
  const held = holders.find((path) => isWithin(canonical(path), output));
  if (held !== undefined) return `must neither be nor contain ${held}, where Weir keeps files of its own`;
  const isAboveData = isWithin(canonical(dataDir), canonical(certificateDirectory) ?? certificateDirectory);
  const directories = [
    ...DIRECTORIES.map((name) => join(dataDir, name)),
    ...(isAboveData ? [] : [certificateDirectory]),
  ];
  const files = [...FILES.map((name) => join(dataDir, name)), trafficFile, trafficTarget, logFile];
  const used =
    directories.find((path) => isWithin(output, canonical(path) ?? path)) ??
    files.find((file) => isBeside(output, join(canonical(dirname(file)) ?? dirname(file), basename(file))));
  return used === undefined ? undefined : `must not lie in ${used}, which Weir keeps for itself`;
}

function canonical(path: string): string | undefined {
  try {
    return canonicalPath(path);
  } catch {
    return undefined;
  }
}

function isWithin(inner: string | undefined, outer: string): boolean {
  return inner === outer || inner?.startsWith(outer.endsWith(sep) ? outer : outer + sep) === true;
}

/** True for the file and for paths derived from it: `traffic.db-bodies`, `traffic.db.index`. */
function isBeside(path: string, file: string): boolean {
  return path === file || [sep, "-", "."].some((mark) => path.startsWith(file + mark));
}
