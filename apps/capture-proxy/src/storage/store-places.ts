import { join, resolve, sep } from "node:path";
import { realPlace } from "@headworks/directories";

/** Where a store keeps what it keeps; absolute paths. */
export interface StorePlaces {
  /** The database. */
  readonly path: string;
  /** Somebody chose that file; it is not the data directory's own. */
  readonly isElsewhere: boolean;
  readonly bodiesFolder: string;
  /** Decoded copies; worth nothing after the process that made them. */
  readonly decodedFolder: string;
  /** Files that one process at a time may lock, each with what is shown to the one that comes second. */
  readonly locks: readonly (readonly [file: string, shownPath: string])[];
}

/**
 * The places of a data directory's store. A database elsewhere than in `traffic.db` has its folders beside it, called after
 * it: other data directories may have theirs there too. Every database has a lock beside it, for whoever names it from
 * whichever data directory and through whichever links.
 */
export function storePlaces(dataDir: string, databasePath: string | undefined): StorePlaces {
  const directory = resolve(dataDir);
  const own = join(directory, "traffic.db");
  const path = resolve(databasePath ?? own);
  const isElsewhere = path !== own;
  const beside = isElsewhere ? `${path}-` : `${directory}${sep}`;
  return {
    path,
    isElsewhere,
    bodiesFolder: `${beside}bodies`,
    decodedFolder: `${beside}decoded`,
    locks: [
      [join(directory, "weir.lock"), directory],
      [`${realPlace(path)}.lock`, path],
    ],
  };
}
