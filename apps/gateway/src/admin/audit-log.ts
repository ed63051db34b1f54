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

/** One change that somebody made or was refused. */
export interface AuditEntry {
  readonly actor: string;
  readonly operation: string;
  /** `ok`, or the code of the refusal. */
  readonly outcome: string;
  readonly request_id: string;
  /** What was asked for, in short. */
  readonly detail?: string;
}

/** An entry as it was written down. */
export interface WrittenEntry extends AuditEntry {
  readonly timestamp: string;
}

/** Where changes are written down. */
export interface AuditLog {
  write(entry: AuditEntry): void;
  /** The latest entries, at most `limit` and 1000, newest first; with a file, those of earlier processes too. */
  latest(limit: number): readonly WrittenEntry[];
}

/**
 * JSON lines of which each holds the hash of the one before, so that a line that was taken out or changed shows. The
 * file belongs to this user alone. Changes are rare, so each is written before its caller is answered. Throws for a path
 * that leads to something else than a file.
 */
export function openAuditLog(path: string, log: Logger, nowMs: () => number): AuditLog {
  const { entries, lastHash, isTorn } = entriesOf(path);
  const recent = new RecentEntries(entries);
  let previous = lastHash;
  // What was torn stays a line of its own, or it would take the next entry with it.
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
        // Part of it may be there.
        if (previous !== hash) lead = "\n";
        log.error(
          { err: error, code: "audit_write_failed", ...entry },
          "A change could not be written to the audit log",
        );
      }
    },
  };
}

/** Windows knows no flag for the last one, and no pipes among its files. */
const APPENDING = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NONBLOCK ?? 0);

/**
 * On disk when it returns. What came in the file's place meanwhile keeps its rights, and a pipe holds nobody up. A file whose
 * rights this user may not change is written all the same.
 */
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
    // Its owner decides who reads it, or a file system that has no rights.
  }
}

function regular(path: string, facts: Stats): Stats {
  if (facts.isFile()) return facts;
  throw new Error(`The audit log cannot go to ${path}: it is no regular file`);
}

/** The number of the first line (from 1) that does not fit the one before it; undefined when all do. */
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

/** Changes go to the process's log where no file is asked for. */
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

/** More than a thousand entries; what is before them is left to those who check the whole chain. */
const MAX_READ_BYTES = 4 * 1024 * 1024;

interface FoundEntries {
  readonly entries: readonly WrittenEntry[];
  readonly lastHash: string;
  /** The last line has no end: the process died, or the disk was full, while it was written. */
  readonly isTorn: boolean;
}

/** What the end of a file holds; lines that are torn or somebody else's are passed over, the chain goes on behind the last good one. */
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
      // The next entry follows the one before this.
    }
  }
  return { entries, lastHash, isTorn: text !== "" && !text.endsWith("\n") };
}

/** The last whole lines of a file, and what is behind them; nothing of a file that is not there. */
function endOf(path: string): string {
  const facts = statSync(path, { throwIfNoEntry: false });
  if (facts === undefined) return "";
  // Opening a pipe waits for whoever writes to it.
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
