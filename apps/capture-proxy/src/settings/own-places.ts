import { basename, dirname, join, sep } from "node:path";
import { realPlace } from "@headworks/directories";
import type { DataPlaces } from "./data-places.ts";

/** Where the files of a Weir lie. */
export interface OwnPlaces extends DataPlaces {
  readonly dataDir: string;
}

/** What is made in the data directory, besides what {@link DataPlaces} names. */
const DIRECTORIES = ["backups", "bodies", "certs", "decoded", "logs"];
const FILES = ["config.json", "saved-rules.json", "traffic.db", "weir.db", "weir.lock"];

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
    return realPlace(path);
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
