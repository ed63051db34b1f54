import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { makeDirectorySync } from "@headworks/files";
import { fingerprint, OWN_PREFIX, otherName, portDirectory } from "./mirror-path.ts";
import type { MirrorPath } from "./mirror-path.ts";

/** Files are written here and moved, so that readers see complete files only. */
const TEMPORARY = `${OWN_PREFIX}tmp`;
/** Records which port of a host owns the host's plain directory name. */
const PORTS = `${OWN_PREFIX}ports.json`;
/** Temporary files older than this belong to a process that ended. */
const STALE_MS = 600_000;
/** Limit of hosts whose port is recorded; further ones get a directory per port. */
const MAX_HOSTS = 1000;
/** Limit of cached directory listings on case-insensitive file systems. */
const MAX_LISTINGS = 500;
const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/**
 * On Linux a name below this folder is resolved in the open directory, even if that was moved or replaced since: the
 * directory that was checked is the one that is used.
 */
const OPEN_FILES = "/proc/self/fd";

interface OpenDirectory {
  readonly fd: number;
  /** Path that resolves its entries. */
  readonly path: string;
  /** Path for messages. */
  readonly shown: string;
}

/** A file that is being written. */
export class TemporaryFile {
  readonly path: string;
  readonly fd: number;
  #isOpen = true;

  /** Creates the file; throws if the name exists. */
  constructor(path: string) {
    this.path = path;
    this.fd = openSync(path, NEW_FILE, 0o600);
  }

  /** Idempotent: after the first call the descriptor may belong to another file. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.fd);
  }
}

export interface MirroredFiles {
  /** Undefined without a body, or if it could not be written. */
  readonly body: TemporaryFile | undefined;
  readonly besides: readonly { readonly suffix: string; readonly file: TemporaryFile }[];
}

export interface TreeOptions {
  /** Detected from the file system by default. */
  readonly ignoresCase?: boolean;
}

/**
 * The directory of mirrored files. Nothing is written outside of it: directories are opened one by one without
 * following links, and files replace existing names instead of writing through them.
 */
export class MirrorTree {
  readonly #root: OpenDirectory;
  readonly #temporary: OpenDirectory;
  readonly #identity: string;
  readonly #ignoresCase: boolean;
  #ports: ReadonlyMap<string, number>;
  readonly #listings = new Map<string, Map<string, string>>();
  readonly outputDir: string;

  /** Creates the directory if needed. Throws the file system's error. */
  constructor(outputDir: string, options: TreeOptions = {}) {
    makeDirectorySync(outputDir);
    this.outputDir = outputDir;
    // The root itself may be a link chosen by the user.
    this.#root = openDirectory(realpathSync(outputDir), outputDir);
    try {
      this.#temporary = childDirectory(this.#root, TEMPORARY) ?? refuse(join(outputDir, TEMPORARY));
    } catch (error) {
      closeSync(this.#root.fd);
      throw error;
    }
    this.#identity = identityOf(this.#root.fd);
    this.#removeStale();
    this.#ignoresCase = options.ignoresCase ?? this.#probeCase();
    this.#ports = readPorts(this.#root);
  }

  /** True if the path still is the directory that was opened: it may have been removed or mounted over. */
  isCurrent(): boolean {
    try {
      return identityText(statSync(this.outputDir)) === this.#identity && fstatSync(this.#temporary.fd).nlink > 0;
    } catch {
      return false;
    }
  }

  /** Creates a file for the caller, mode 0600. */
  temporaryFile(): TemporaryFile {
    return new TemporaryFile(`${this.#temporary.path}/${randomUUID()}`);
  }

  discard(file: TemporaryFile): void {
    file.close();
    rmSync(file.path, { force: true });
  }

  /** Moves finished files to their paths; returns the body's path. Throws the file system's error. */
  write(path: MirrorPath, port: number | undefined, files: MirroredFiles): string {
    const [host = "", ...below] = path.directories;
    let directory = this.#enter(this.#root, this.#hostDirectory(host, port), true);
    try {
      for (const name of below) directory = this.#enter(directory, name, false);
      const file = this.#fileName(directory, path.file);
      const moves = [
        ...(files.body === undefined ? [] : [{ from: files.body, to: file }]),
        ...files.besides.map((beside) => ({ from: beside.file, to: file + beside.suffix })),
      ];
      for (const { from } of moves) from.close();
      for (const { from, to } of moves) renameSync(from.path, `${directory.path}/${to}`);
      return join(directory.shown, file);
    } finally {
      closeSync(directory.fd);
    }
  }

  close(): void {
    closeSync(this.#temporary.fd);
    closeSync(this.#root.fd);
  }

  /** Opens a child directory and closes the parent, unless that is the root. */
  #enter(parent: OpenDirectory, name: string, isTop: boolean): OpenDirectory {
    try {
      const known = this.#spelling(parent, name);
      const own = childDirectory(parent, known);
      if (own !== undefined) return own;
      // The name is a file or a link, which is not followed.
      const other = otherName(name, "dir");
      return childDirectory(parent, this.#spelling(parent, other)) ?? refuse(join(parent.shown, other));
    } finally {
      if (!isTop) closeSync(parent.fd);
    }
  }

  #fileName(directory: OpenDirectory, name: string): string {
    const known = this.#spelling(directory, name);
    const isTaken = lstatSync(`${directory.path}/${known}`, { throwIfNoEntry: false })?.isDirectory() === true;
    return isTaken ? this.#spelling(directory, otherName(name, "file")) : known;
  }

  /**
   * Non-default ports get their own directory: the first port of a host gets the plain name if no files of the host
   * exist yet, later ones add their number. `port` is undefined for the scheme's default.
   */
  #hostDirectory(host: string, port: number | undefined): string {
    const owner = this.#ports.get(host);
    if (port === undefined) return owner === undefined ? host : `${host}_default`;
    if (owner === port) return host;
    const isFree = owner === undefined && this.#ports.size < MAX_HOSTS && !existsIn(this.#root, host);
    if (!isFree) return portDirectory(host, port);
    const owners = new Map(this.#ports).set(host, port);
    this.#writePorts(owners);
    this.#ports = owners;
    return host;
  }

  #writePorts(owners: ReadonlyMap<string, number>): void {
    const file = this.temporaryFile();
    try {
      writeSync(file.fd, `${JSON.stringify(Object.fromEntries(owners), null, 1)}\n`);
      file.close();
      renameSync(file.path, `${this.#root.path}/${PORTS}`);
    } catch (error) {
      this.discard(file);
      throw error;
    }
  }

  /** The name under which `name` is stored; ignoring case, later spellings get a fingerprint. */
  #spelling(directory: OpenDirectory, name: string): string {
    if (!this.#ignoresCase) return name;
    const listing = this.#listing(directory);
    const folded = name.toLowerCase();
    const kept = listing.get(folded);
    if (kept === undefined || kept === name) {
      listing.set(folded, name);
      return name;
    }
    const other = otherName(name, fingerprint(name).slice(0, 8));
    listing.set(other.toLowerCase(), other);
    return other;
  }

  #listing(directory: OpenDirectory): Map<string, string> {
    const identity = identityOf(directory.fd);
    const known = this.#listings.get(identity);
    if (known !== undefined) return known;
    const listing = new Map(readdirSync(directory.path).map((name) => [name.toLowerCase(), name]));
    if (this.#listings.size >= MAX_LISTINGS) this.#listings.clear();
    this.#listings.set(identity, listing);
    return listing;
  }

  #probeCase(): boolean {
    const file = this.temporaryFile();
    try {
      return existsSync(`${this.#temporary.path}/${basename(file.path).toUpperCase()}`);
    } finally {
      this.discard(file);
    }
  }

  #removeStale(): void {
    const fresh = this.temporaryFile();
    const nowMs = fstatSync(fresh.fd).mtimeMs;
    this.discard(fresh);
    for (const name of readdirSync(this.#temporary.path)) {
      const path = `${this.#temporary.path}/${name}`;
      const found = lstatSync(path, { throwIfNoEntry: false });
      if (found?.isFile() === true && nowMs - found.mtimeMs > STALE_MS) rmSync(path, { force: true });
    }
  }
}

function basename(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function openDirectory(path: string, shown: string): OpenDirectory {
  const fd = openSync(path, DIRECTORY);
  return { fd, path: process.platform === "linux" ? `${OPEN_FILES}/${fd}` : path, shown };
}

/** Opens a child directory, creating it if needed; undefined if the name is something else. */
function childDirectory(parent: OpenDirectory, name: string): OpenDirectory | undefined {
  const path = `${parent.path}/${name}`;
  try {
    mkdirSync(path, 0o700);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const found = lstatSync(path);
  if (!found.isDirectory()) return undefined;
  // Without /proc, a directory swapped for a link in between is detected afterwards.
  const child = openDirectory(path, join(parent.shown, name));
  if (identityOf(child.fd) === identityText(found)) return child;
  closeSync(child.fd);
  return undefined;
}

function existsIn(directory: OpenDirectory, name: string): boolean {
  return lstatSync(`${directory.path}/${name}`, { throwIfNoEntry: false }) !== undefined;
}

function identityOf(fd: number): string {
  return identityText(fstatSync(fd));
}

function identityText({ dev, ino }: { readonly dev: number; readonly ino: number }): string {
  return `${dev}:${ino}`;
}

function readPorts(root: OpenDirectory): Map<string, number> {
  const path = `${root.path}/${PORTS}`;
  let read: unknown;
  try {
    if (!lstatSync(path).isFile()) return new Map();
    read = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    // Missing or edited by hand: hosts get new directories.
    return new Map();
  }
  const entries = typeof read === "object" && read !== null ? Object.entries(read) : [];
  return new Map(entries.filter((entry): entry is [string, number] => Number.isInteger(entry[1])).slice(0, MAX_HOSTS));
}

function refuse(path: string): never {
  throw new Error(`${path} is not a directory, and links are not followed`);
}
