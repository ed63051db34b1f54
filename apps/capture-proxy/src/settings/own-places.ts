import { basename, dirname, join, sep } from "node:path";
import { canonicalPath } from "@headworks/files";
import type { DataPlaces } from "./data-places.ts";

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
