import { createHash } from "node:crypto";
import {
  appendFileSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  openSync,
  readSync,
  statSync,
  type Stats,
} from "node:fs";
import type { Logger } from "pino";

/** A change, completed or refused. */
export interface AuditEntry {
  readonly actor: string;
  readonly operation: string;
  /** `ok`, or the error code. */
  readonly outcome: string;
  readonly request_id: string;
  /** A short description of the request. */
  readonly detail?: string;
}

export interface WrittenEntry extends AuditEntry {
  readonly timestamp: string;
}

export interface AuditLog {
  write(entry: AuditEntry): void;
  /** The latest entries, newest first, at most `limit` and 1000; a file also has those of earlier processes. */
  latest(limit: number): readonly WrittenEntry[];
}

/**
 * JSON lines with the hash of the preceding line, so that removed or changed lines are detectable. The file is private
 * to this user. Entries are rare and written synchronously before the response. Throws if the path is no regular file.
 */
export function openAuditLog(path: string, log: Logger, nowMs: () => number): AuditLog {
  const { entries, lastHash, isTorn } = entriesOf(path);
  const recent = new RecentEntries(entries);
  let previous = lastHash;
  // Terminates a torn line, which would corrupt the next entry.
  let lead = isTorn ? "\n" : "";
  return {
    latest: (limit) => recent.latest(limit),
    write: (entry) => {
      const line = { timestamp: new Date(nowMs()).toISOString(), ...entry, previous };
      const hash = createHash("sha256").update(JSON.stringify(line)).digest("hex");
      recent.add({ timestamp: line.timestamp, ...entry });
      try {
        append(path, `${lead}${JSON.stringify({ ...line, hash })}\n`);
        lead = "";
        previous = hash;
      } catch (error) {
        // A partial line may have been written.
        if (previous !== hash) lead = "\n";
        log.error(
          { err: error, code: "audit_write_failed", ...entry },
          "A change could not be written to the audit log",
        );
      }
    },
  };
}

/** Windows has neither O_NOFOLLOW nor FIFOs in the file system. */
const APPENDING = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NONBLOCK ?? 0);

/** Writes durably. A replaced file keeps its mode, and a FIFO does not block. A failed chmod is ignored. */
function append(path: string, text: string): void {
  const file = openSync(path, APPENDING, 0o600);
  try {
    const { mode } = regular(path, fstatSync(file));
    if ((mode & 0o077) !== 0) keepToUser(file);
    appendFileSync(file, text, { flush: true });
  } finally {
    closeSync(file);
  }
}

function keepToUser(file: number): void {
  try {
    fchmodSync(file, 0o600);
  } catch {
    // The file has another owner, or the file system has no modes.
  }
}

function regular(path: string, facts: Stats): Stats {
  if (facts.isFile()) return facts;
  throw new Error(`The audit log cannot go to ${path}: it is no regular file`);
}

/** The 1-based number of the first line with a wrong hash; undefined if the chain is intact. */
export function firstBrokenLine(text: string): number | undefined {
  let previous = "";
  for (const [at, line] of text.split("\n").entries()) {
    if (line === "") continue;
    try {
      const { hash, ...rest } = JSON.parse(line) as { hash: string; previous: string };
      const expected = createHash("sha256").update(JSON.stringify(rest)).digest("hex");
      if (rest.previous !== previous || hash !== expected) return at + 1;
      previous = hash;
    } catch {
      return at + 1;
    }
  }
  return undefined;
}

/** Writes changes to the process log if no file is configured. */
export function auditInto(log: Logger, nowMs: () => number): AuditLog {
  const audit = log.child({ target: "gateway::audit" });
  const recent = new RecentEntries([]);
  return {
    latest: (limit) => recent.latest(limit),
    write: (entry) => {
      recent.add({ timestamp: new Date(nowMs()).toISOString(), ...entry });
      audit.info(entry, "audit");
    },
  };
}

const MAX_RECENT = 1000;

class RecentEntries {
  readonly #entries: WrittenEntry[];

  constructor(entries: readonly WrittenEntry[]) {
    this.#entries = entries.slice(-MAX_RECENT);
  }

  add(entry: WrittenEntry): void {
    this.#entries.push(entry);
    if (this.#entries.length > MAX_RECENT) this.#entries.shift();
  }

  latest(limit: number): readonly WrittenEntry[] {
    return limit <= 0 ? [] : this.#entries.slice(-limit).toReversed();
  }
}

/** Covers more than a thousand entries; the full chain is verified offline. */
const MAX_READ_BYTES = 4 * 1024 * 1024;

interface FoundEntries {
  readonly entries: readonly WrittenEntry[];
  readonly lastHash: string;
  /** The last line is incomplete, after a crash or a full disk. */
  readonly isTorn: boolean;
}

/** The entries at the end of a file; torn or foreign lines are skipped. */
function entriesOf(path: string): FoundEntries {
  const entries: WrittenEntry[] = [];
  let lastHash = "";
  const text = endOf(path);
  for (const line of text.split("\n")) {
    if (line === "") continue;
    try {
      const { hash, previous: _, ...entry } = JSON.parse(line) as WrittenEntry & { hash?: string; previous?: string };
      entries.push(entry);
      lastHash = hash ?? "";
    } catch {
      // The next entry continues the chain before this line.
    }
  }
  return { entries, lastHash, isTorn: text !== "" && !text.endsWith("\n") };
}

/** The last complete lines of a file and the remainder; empty if the file does not exist. */
function endOf(path: string): string {
  const facts = statSync(path, { throwIfNoEntry: false });
  if (facts === undefined) return "";
  // Opening a FIFO would block.
  regular(path, facts);
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const startAt = Math.max(0, size - MAX_READ_BYTES);
    const bytes = Buffer.alloc(size - startAt);
    const read = readSync(file, bytes, 0, bytes.length, startAt);
    const text = bytes.toString("utf8", 0, read);
    return startAt === 0 ? text : text.slice(text.indexOf("\n") + 1);
  } finally {
    closeSync(file);
  }
}
