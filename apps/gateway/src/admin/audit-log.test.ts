import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { test } from "node:test";
import { pino } from "pino";
import { temporaryDirectory } from "@headworks/testkit";
import { firstBrokenLine, openAuditLog } from "./audit-log.ts";

const entry = (operation: string) => ({ actor: "ada", operation, outcome: "ok", request_id: "r" });

test("entries are chained over restarts, for this user alone, and a changed or missing line shows", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("audit.jsonl");
  const log = pino({ enabled: false });
  openAuditLog(path, log, () => 0).write(entry("one"));
  const again = openAuditLog(path, log, () => 1);
  again.write(entry("two"));
  again.write(entry("three"));
  assert.deepEqual(openAuditLog(path, log, () => 2).latest(2), [
    { timestamp: "1970-01-01T00:00:00.001Z", ...entry("three") },
    { timestamp: "1970-01-01T00:00:00.001Z", ...entry("two") },
  ]);
  const text = readFileSync(path, "utf8");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(firstBrokenLine(text), undefined);
  assert.equal(firstBrokenLine(text.replace("two", "TWO")), 2);
  assert.equal(firstBrokenLine(text.split("\n").toSpliced(1, 1).join("\n")), 2);
  assert.equal(firstBrokenLine(`${text}{"torn`), 4);
});

test("a file that cannot be written is told in the log, and the change goes on", async () => {
  await using directory = await temporaryDirectory();
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(line) });
  openAuditLog(directory.file("none", "audit.jsonl"), log, () => 0).write(entry("one"));
  assert.match(lines.join(""), /audit_write_failed/);
});
