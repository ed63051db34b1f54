import assert from "node:assert/strict";
import { appendFileSync, readFileSync, rmSync, statSync } from "node:fs";
import { test } from "node:test";
import { pino } from "pino";
import { runProcess, temporaryDirectory } from "@headworks/testkit";
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

test("an unwritable file is logged, and the change proceeds", async () => {
  await using directory = await temporaryDirectory();
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(line) });
  openAuditLog(directory.file("none", "audit.jsonl"), log, () => 0).write(entry("one"));
  assert.match(lines.join(""), /audit_write_failed/);
});

test("a path that leads to a pipe, a directory or a device is refused at once, and keeps its rights", async () => {
  await using directory = await temporaryDirectory();
  const log = pino({ enabled: false });
  const pipe = directory.file("pipe");
  await runProcess("mkfifo", ["-m", "644", pipe], { timeoutMs: 5000 });
  for (const path of [pipe, directory.path, "/dev/null"]) {
    const { mode } = statSync(path);
    assert.throws(() => openAuditLog(path, log, () => 0), /cannot go to .*: it is no regular file$/, path);
    assert.equal(statSync(path).mode, mode);
  }
});

test("a pipe in place of the file is refused without blocking", async () => {
  await using directory = await temporaryDirectory();
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(line) });
  const path = directory.file("audit.jsonl");
  const audit = openAuditLog(path, log, () => 0);
  audit.write(entry("one"));
  rmSync(path);
  await runProcess("mkfifo", ["-m", "644", path], { timeoutMs: 5000 });
  audit.write(entry("two"));
  assert.match(lines.join(""), /audit_write_failed/);
  assert.equal(statSync(path).mode & 0o777, 0o644);
});

test("an entry behind one that was torn is whole, and follows the last whole one", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("audit.jsonl");
  const log = pino({ enabled: false });
  openAuditLog(path, log, () => 0).write(entry("one"));
  const whole = readFileSync(path, "utf8");
  appendFileSync(path, '{"timestamp":"1970-01-01T00:00:00.000Z","actor":"a');
  openAuditLog(path, log, () => 1).write(entry("two"));
  const again = openAuditLog(path, log, () => 2);
  assert.deepEqual(
    again.latest(10).map(({ operation }) => operation),
    ["two", "one"],
  );
  const lines = readFileSync(path, "utf8").split("\n");
  assert.equal(lines.length, 4);
  assert.equal(firstBrokenLine(lines.join("\n")), 2, "the torn line shows");
  assert.equal(firstBrokenLine(`${whole}${lines[2]}\n`), undefined, "without it the chain is whole");
});

test("only the end of a large file is read, from the first complete line, and the chain continues", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("audit.jsonl");
  const log = pino({ enabled: false });
  const first = openAuditLog(path, log, () => 0);
  first.write({ ...entry("old"), detail: "é".repeat(2_500_000) });
  for (let at = 0; at < 5; at += 1) first.write(entry(`new-${at}`));
  const again = openAuditLog(path, log, () => 1);
  assert.deepEqual(
    again.latest(100).map(({ operation }) => operation),
    ["new-4", "new-3", "new-2", "new-1", "new-0"],
  );
  again.write(entry("newer"));
  assert.equal(firstBrokenLine(readFileSync(path, "utf8")), undefined);
});
