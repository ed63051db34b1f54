import assert from "node:assert/strict";
import { closeSync, existsSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { platform } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { bodyFilePath, BodyFiles } from "../stored-bodies.ts";
import { WriterThread } from "./writer-thread.ts";
import { FileSpool } from "./body-spool.ts";
import { openDatabase } from "../database.ts";
import { sampleExchange } from "../read/sample-exchange.ts";
import { TrafficWriter } from "./traffic-writer.ts";
import { WriterClient } from "./writer-client.ts";
import type { FromWriter, ToWriter, WriterSetup } from "./writer-messages.ts";
import { startWriterThread } from "./start-writer-thread.ts";

// State that survives a crash of the writer thread and temporary disk errors.

function setupIn(directory: { file(...names: string[]): string }): WriterSetup {
  return {
    path: directory.file("traffic.db"),
    bodiesFolder: directory.file("bodies"),
    limits: { maxRequests: 0, maxTotalSizeMb: null, maxBodyBytes: 1_000_000 },
  };
}

const SILENT = {
  changed: () => undefined,
  databaseReplaced: () => undefined,
  statusChanged: () => undefined,
  alarm: () => undefined,
};

const RUNNING = { step: "forwarding" } as const;
const BACK = { what: "the thread to be back", timeoutMs: 5000 };

test("an exchange that began during an outage is stored at its end", async () => {
  await using directory = await temporaryDirectory();
  const setup = setupIn(directory);
  const worker = startWriterThread();
  const client = await WriterClient.start(setup, SILENT, worker);
  const [begunBefore, begunBetween] = [client.nextSeq(), client.nextSeq()];
  client.record(begunBefore, sampleExchange({ id: "before", state: RUNNING }));
  await client.flush();
  await worker.terminate();
  await waitUntil(() => !client.status().ok, { what: "the end of the thread to be known" });
  client.record(begunBetween, sampleExchange({ id: "between", state: RUNNING }));
  await waitUntil(() => client.status().ok, BACK);
  client.record(begunBefore, sampleExchange({ id: "before", path: "/over" }));
  client.record(begunBetween, sampleExchange({ id: "between", path: "/over" }));
  await client.close();
  const database = openDatabase(setup.path, { readOnly: true });
  const rows = database.prepare("SELECT id, path, state FROM entry ORDER BY seq").all();
  database.close();
  assert.deepEqual(
    rows.map((row) => [row["id"], row["path"], row["state"]]),
    [
      ["before", "/over", 1],
      ["between", "/over", 1],
    ],
  );
});

test("closing during a restart leaves no thread running", async () => {
  await using directory = await temporaryDirectory();
  const setup = setupIn(directory);
  const worker = startWriterThread();
  const client = await WriterClient.start(setup, SILENT, worker);
  await worker.terminate();
  await waitUntil(() => !client.status().ok, { what: "the end of the thread to be known" });
  // The thread restarts after a second.
  await sleep(1005);
  await client.close();
  await sleep(300);
  assert.equal(existsSync(`${setup.path}-wal`), false, "the last connection to close removes the log");
});

test("a body whose writer thread ended is discarded, not finished", () => {
  const messages: ToWriter[] = [];
  let reservedBytes = 0;
  const target = {
    send: (message: ToWriter) => void messages.push(message),
    fits: () => true,
    reserve: (bytes: number) => ((reservedBytes += bytes), true),
    release: (bytes: number) => void (reservedBytes -= bytes),
    shed: () => undefined,
  };
  const spool = new FileSpool(target, 7);
  const body = spool.open();
  body?.write(Buffer.alloc(400_000));
  const sentBytes = messages.reduce((sum, message) => sum + (message.kind === "piece" ? message.bytes.length : 0), 0);
  messages.length = 0;
  spool.failAll();
  assert.equal(reservedBytes, sentBytes, "what was not sent takes no room any more");
  body?.end();
  assert.deepEqual(messages, [{ kind: "fileDiscard", file: 7 }]);
  assert.equal(reservedBytes, sentBytes);
});

test("a body failure is reported once, and again after a body of that size was written", async () => {
  await using directory = await temporaryDirectory();
  const files = new BodyFiles(directory.path);
  const write = (file: number, bytes: number): string | null => {
    files.append(file, Buffer.alloc(bytes));
    files.finish(file);
    return files.takeFailureReason();
  };
  for (const file of [1, 2, 4, 6]) writeFileSync(bodyFilePath(directory.path, file), "in the way");
  assert.match(write(1, 1000) ?? "", /^EEXIST/);
  assert.deepEqual([write(2, 1000), write(3, 999), write(4, 1000), write(5, 1000)], [null, null, null, null]);
  assert.match(write(6, 1000) ?? "", /^EEXIST/);
  files.close();
});

test("a file that cannot be synced does not delay others and is retried", async (context) => {
  if (platform() !== "linux") return context.skip("descriptors are found in /proc");
  await using directory = await temporaryDirectory();
  const files = new BodyFiles(directory.path);
  for (const file of [1, 2, 3]) {
    files.append(file, Buffer.from("body"));
    files.finish(file);
  }
  const openFiles = (): string[] =>
    readdirSync("/proc/self/fd").filter(
      (fd) => targetOf(fd).startsWith(directory.path) && targetOf(fd).endsWith(".body"),
    );
  closeSync(Number(openFiles().find((fd) => targetOf(fd) === join(directory.path, "1.body"))));
  await assert.rejects(files.sync(), { code: "EBADF" });
  assert.deepEqual(openFiles(), [], "the others were brought there and closed");
  await assert.rejects(files.sync(), { code: "EBADF" });
});

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

test("commits during a slow sync are covered by the next sync", async (context) => {
  await using directory = await temporaryDirectory();
  let syncs = 0;
  const began: (() => void)[] = [];
  context.mock.method(TrafficWriter.prototype, "sync", async () => {
    syncs += 1;
    began.shift()?.();
    await sleep(100);
  });
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const posted: FromWriter[] = [];
  const thread = new WriterThread(setupIn(directory), (message) => void posted.push(message), end);
  thread.start();
  const commit = (): void => thread.receive({ kind: "batch", entries: 0, bytes: 0, memory: new ArrayBuffer(0) });
  const first = new Promise<void>((resolve) => began.push(resolve));
  commit();
  await first;
  commit();
  await waitUntil(() => syncs === 2, { what: "a second sync" });
  thread.receive({ kind: "close" });
  await ended;
  assert.ok(posted.some(({ kind }) => kind === "closed"));
});
