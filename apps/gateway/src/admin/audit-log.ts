import { createHash } from "node:crypto";
import { appendFileSync, chmodSync, existsSync, readFileSync } from "node:fs";
import type { Logger } from "pino";

/** One change that somebody made or was refused. */
export interface AuditEntry {
  readonly actor: string;
  readonly operation: string;
  /** `ok`, or the code of the refusal. */
  readonly outcome: string;
  readonly request_id: string;
}

/** Where changes are written down. */
export interface AuditLog {
  write(entry: AuditEntry): void;
}

/**
 * JSON lines of which each holds the hash of the one before, so that a line that was taken out or changed shows. The
 * file belongs to this user alone. Changes are rare, so each is written before its caller is answered.
 */
export function openAuditLog(path: string, log: Logger, nowMs: () => number): AuditLog {
  let previous = lastHash(path);
  return {
    write: (entry) => {
      const line = { timestamp: new Date(nowMs()).toISOString(), ...entry, previous };
      const hash = createHash("sha256").update(JSON.stringify(line)).digest("hex");
      try {
        appendFileSync(path, `${JSON.stringify({ ...line, hash })}\n`, { mode: 0o600, flush: true });
        chmodSync(path, 0o600);
        previous = hash;
      } catch (error) {
        log.error(
          { err: error, code: "audit_write_failed", ...entry },
          "A change could not be written to the audit log",
        );
      }
    },
  };
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
export function auditInto(log: Logger): AuditLog {
  const audit = log.child({ target: "gateway::audit" });
  return { write: (entry) => audit.info(entry, "audit") };
}

function lastHash(path: string): string {
  if (!existsSync(path)) return "";
  const last = readFileSync(path, "utf8").trimEnd().split("\n").at(-1) ?? "";
  try {
    return (JSON.parse(last) as { hash?: string }).hash ?? "";
  } catch {
    return "";
  }
}
