import assert from "node:assert/strict";
import {
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { BodyPart } from "#storage/capture-store.ts";
import type { BodyHead } from "./mirror-messages.ts";
import { MirrorQueue } from "./mirror-queue.ts";
import type { GivenBody, MirrorQueueParts, OfferedJob } from "./mirror-queue.ts";

interface Rig extends AsyncDisposable {
  readonly dir: string;
  readonly outside: string;
  readonly queue: MirrorQueue;
  readonly said: string[];
  /** What the store has, by `<id> <side>`. */
  readonly stored: Map<string, Buffer>;
  offer(path: string, body: Buffer | string, options?: OfferOptions): void;
  read(...names: string[]): string;
  files(): string[];
}

interface OfferOptions {
  readonly host?: string;
  readonly port?: number;
  readonly type?: string;
  readonly encoding?: string;
  readonly sizeBytes?: number;
  readonly isBroken?: boolean;
  readonly request?: Buffer;
  readonly isStored?: boolean;
  readonly outputDir?: string;
}

async function startQueue(limits?: MirrorQueueParts["limits"]): Promise<Rig> {
  const directory = await temporaryDirectory();
  const dir = directory.file("mirror");
  const outside = directory.file("outside");
  mkdirSync(outside);
  const said: string[] = [];
  const stored = new Map<string, Buffer>();
  const queue = new MirrorQueue({
    store: {
      flush: async () => undefined,
      readBody: async (id, side, { start, end }) => storedPart(stored.get(`${id} ${side}`), start, end),
    },
    log: { info: (_facts, text) => said.push(text), warn: (_facts, text) => said.push(text) },
    nowMs: () => 0,
    monotonicMs: () => performance.now(),
    after: (delayMs, callback) => {
      const timer = setTimeout(callback, delayMs);
      return () => clearTimeout(timer);
    },
    onTurn: () => said.push("turn"),
    ...(limits && { limits }),
  });
  return {
    dir,
    outside,
    queue,
    said,
    stored,
    offer: (path, body, options = {}) => queue.offer(offered(dir, path, Buffer.from(body), options, stored)),
    read: (...names) => readFileSync(join(dir, ...names), "utf8"),
    files: () =>
      readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1))
        .filter((name) => !name.startsWith(".weir-"))
        .sort(),
    [Symbol.asyncDispose]: async () => {
      await queue.close(1000);
      await directory.remove();
    },
  };
}

function storedPart(body: Buffer | undefined, start: number, end: number | undefined): BodyPart | undefined {
  if (body === undefined) return undefined;
  const bytes = new Uint8Array(body.subarray(start, end));
  return { totalBytes: body.length, start, bytes, contentType: null, partial: false, undecodable: false };
}

let nextId = 1;

function offered(
  dir: string,
  path: string,
  body: Buffer,
  options: OfferOptions,
  stored: Map<string, Buffer>,
): OfferedJob {
  const {
    host = "a.test",
    port,
    type = "text/plain",
    encoding,
    sizeBytes,
    isBroken = false,
    request,
    isStored,
  } = options;
  const entryId = `entry-${nextId++}`;
  const head = (bytes: Buffer): BodyHead => ({
    contentType: type,
    contentEncoding: encoding === undefined ? [] : [encoding],
    sizeBytes: sizeBytes ?? bytes.length,
    storedBytes: bytes.length,
    isBroken,
  });
  if (isStored === true) stored.set(`${entryId} response`, body);
  const response: GivenBody = isStored === true ? "stored" : new Uint8Array(body);
  return {
    entryId,
    bodies: { response, ...(request && { request: new Uint8Array(request) }) },
    job: {
      outputDir: options.outputDir ?? dir,
      host,
      port,
      path,
      response: head(body),
      request: request && { ...head(request), contentEncoding: [] },
      facts: { url: `http://${host}${path}`, status_code: 200 },
    },
  };
}

function sidecar(rig: Rig, ...names: string[]): { truncated: boolean; url: string; body: Record<string, unknown> } {
  return JSON.parse(rig.read(...names)) as ReturnType<typeof sidecar>;
}

test("a body, its sidecar and the body of its request are written whole, private, and replaced by the next response", async () => {
  await using rig = await startQueue();
  rig.offer("/api/a.json?x=1", "first", { request: Buffer.from("question") });
  rig.offer("/api/a.json?x=2", "second");
  await rig.queue.idle();
  assert.deepEqual(rig.files(), ["a.test/api/a.json", "a.test/api/a.json.meta.json", "a.test/api/a.json.request"]);
  assert.equal(rig.read("a.test/api/a.json"), "second");
  assert.equal(rig.read("a.test/api/a.json.request"), "question");
  const { url, truncated, body } = sidecar(rig, "a.test/api/a.json.meta.json");
  assert.deepEqual([url, truncated], ["http://a.test/api/a.json?x=2", false]);
  assert.deepEqual(body, {
    form: "decoded",
    content_encoding: null,
    file_bytes: 6,
    wire_bytes: 6,
    truncated: false,
    complete: true,
  });
  assert.equal(statSync(join(rig.dir, "a.test/api/a.json")).mode & 0o777, 0o600);
  const { files_written, bytes_written, files_dropped, queued_files, queued_bytes } = rig.queue.status();
  assert.deepEqual([files_written, bytes_written, files_dropped, queued_files, queued_bytes], [3, 19, 0, 0, 0]);
  assert.deepEqual(readdirSync(join(rig.dir, ".weir-tmp")), []);
});

test("bodies are written decoded where that is possible, raw and said so where not, and what was cut is marked", async () => {
  await using rig = await startQueue();
  const text = "decoded ".repeat(100_000);
  const gzip = gzipSync(text);
  const bomb = gzipSync(Buffer.alloc(20_000_000));
  const cases: readonly (readonly [name: string, body: Buffer, options: OfferOptions, form: string, bytes: number])[] =
    [
      ["gzip.txt", gzip, { encoding: "gzip" }, "decoded", text.length],
      ["br.txt", brotliCompressSync(text), { encoding: "br" }, "decoded", text.length],
      ["double.txt", gzipSync(gzip), { encoding: "gzip, gzip" }, "decoded", text.length],
      ["stored.txt", gzip, { encoding: "gzip", isStored: true }, "decoded", text.length],
      ["large.bin", bomb, { encoding: "gzip" }, "decoded", 20_000_000],
      ["lies.txt", Buffer.from("no gzip"), { encoding: "gzip" }, "raw", 7],
      ["lies-stored.txt", Buffer.from("no gzip"), { encoding: "gzip", isStored: true }, "raw", 7],
      ["unknown.txt", Buffer.from("secret"), { encoding: "aes128gcm" }, "raw", 6],
      ["cut.bin", Buffer.from("half"), { sizeBytes: 8 }, "decoded", 4],
    ];
  for (const [name, body, options] of cases) rig.offer(`/${name}`, body, options);
  await rig.queue.idle();
  assert.equal(rig.queue.status().last_error, null);
  for (const [name, , , form, bytes] of cases) {
    const { body, truncated } = sidecar(rig, `a.test/${name}.meta.json`);
    assert.deepEqual([body["form"], body["file_bytes"], truncated], [form, bytes, name === "cut.bin"], name);
    assert.equal(statSync(join(rig.dir, "a.test", name)).size, bytes, name);
  }
  assert.equal(rig.read("a.test/stored.txt"), text);
  rig.offer("/cut-gzip.txt", gzip.subarray(0, 400), { encoding: "gzip", sizeBytes: gzip.length });
  await rig.queue.idle();
  const cut = sidecar(rig, "a.test/cut-gzip.txt.meta.json");
  assert.deepEqual([cut.truncated, cut.body["form"]], [true, "decoded"]);
  assert.ok(text.startsWith(rig.read("a.test/cut-gzip.txt")));
});

test("links in the tree are not followed and files outside never touched", async () => {
  await using rig = await startQueue();
  rig.offer("/seed.txt", "seed");
  await rig.queue.idle();
  writeFileSync(join(rig.outside, "target.txt"), "precious");
  symlinkSync(rig.outside, join(rig.dir, "a.test", "dir"));
  symlinkSync(rig.outside, join(rig.dir, "b.test"));
  symlinkSync(join(rig.outside, "target.txt"), join(rig.dir, "a.test", "file.txt"));
  symlinkSync(join(rig.outside, "new.txt"), join(rig.dir, "a.test", "dangling.txt"));
  symlinkSync(join(rig.outside, "target.txt"), join(rig.dir, "a.test", "seed.txt.meta.json.tmp"));
  for (const path of ["/dir/target.txt", "/file.txt", "/dangling.txt"]) rig.offer(path, "evil");
  rig.offer("/target.txt", "evil", { host: "b.test" });
  await rig.queue.idle();
  assert.deepEqual(readdirSync(rig.outside), ["target.txt"]);
  assert.equal(readFileSync(join(rig.outside, "target.txt"), "utf8"), "precious");
  assert.equal(rig.read("a.test/file.txt"), "evil");
  assert.equal(rig.read("a.test/dir~dir/target.txt"), "evil");
  assert.equal(rig.read("b~dir.test/target.txt"), "evil");
});

test("a file where a directory is needed, and the reverse, get other names that stay the same", async () => {
  await using rig = await startQueue();
  for (const round of ["1", "2"]) {
    rig.offer("/a.js", `file ${round}`);
    rig.offer("/a.js/b.js", `below ${round}`);
    rig.offer("/d.js/x.js", `deep ${round}`);
    rig.offer("/d.js", `flat ${round}`);
    await rig.queue.idle();
  }
  assert.equal(rig.read("a.test/a.js"), "file 2");
  assert.equal(rig.read("a.test/a~dir.js/b.js"), "below 2");
  assert.equal(rig.read("a.test/d.js/x.js"), "deep 2");
  assert.equal(rig.read("a.test/d~file.js"), "flat 2");
  assert.equal(rig.queue.status().files_dropped, 0);
});

test("ports of one host keep apart, now and after a restart", async () => {
  await using rig = await startQueue();
  const offerAll = async (round: string): Promise<void> => {
    rig.offer("/x.txt", `3000 ${round}`, { host: "localhost", port: 3000 });
    await rig.queue.idle();
    rig.offer("/x.txt", `4000 ${round}`, { host: "localhost", port: 4000 });
    rig.offer("/x.txt", `plain ${round}`, { host: "localhost" });
    await rig.queue.idle();
  };
  await offerAll("1");
  // Another directory in between makes the thread open this one anew.
  rig.offer("/y.txt", "y", { outputDir: rig.outside });
  await offerAll("2");
  assert.equal(rig.read("localhost/x.txt"), "3000 2");
  assert.equal(rig.read("localhost_4000/x.txt"), "4000 2");
  assert.equal(rig.read("localhost_default/x.txt"), "plain 2");
});

test("a large body that is read back late does not replace what came after it", async () => {
  await using rig = await startQueue();
  rig.offer("/a.txt", "x".repeat(3_000_000), { isStored: true });
  rig.offer("/a.txt", "newer");
  await rig.queue.idle();
  assert.equal(rig.read("a.test/a.txt"), "newer");
  assert.equal(rig.queue.status().files_dropped, 0);
});

test("exchanges beyond the queue limit are dropped, counted and logged once; recovery is logged", async () => {
  await using rig = await startQueue({ jobs: 3, bytes: 100, storedJobs: 1 });
  for (let index = 0; index < 10; index += 1) rig.offer(`/${index}.txt`, "x");
  rig.offer("/large.txt", "x".repeat(101));
  assert.equal(rig.queue.status().files_dropped, 8);
  assert.match(rig.queue.status().last_error ?? "", /^The queue is full/);
  assert.equal(rig.queue.status().writing, false);
  await rig.queue.idle();
  rig.offer("/again.txt", "x");
  await rig.queue.idle();
  assert.equal(rig.queue.status().writing, true);
  assert.deepEqual(rig.said, [
    "The mirror is dropping files; traffic and recording are not affected",
    "turn",
    "The mirror is writing files again",
    "turn",
  ]);
});

test("an entry that was removed before it could be read back is a dropped file, and leaves none", async () => {
  await using rig = await startQueue();
  rig.offer("/gone.txt", "x".repeat(3000), { isStored: true });
  rig.stored.clear();
  await rig.queue.idle();
  const { files_dropped, last_error } = rig.queue.status();
  assert.deepEqual(
    [files_dropped, last_error],
    [1, "A body cannot be read back: the entry was removed, or not stored"],
  );
  rig.offer("/here.txt", "x".repeat(3000), { isStored: true });
  await rig.queue.idle();
  assert.deepEqual(rig.files(), ["a.test/here.txt", "a.test/here.txt.meta.json"]);
  assert.deepEqual(readdirSync(join(rig.dir, ".weir-tmp")), []);
});

test("a directory that cannot be used drops files and says why; one that is removed or mended is used again", async () => {
  await using rig = await startQueue();
  writeFileSync(rig.dir, "a file stands here");
  rig.offer("/a.txt", "x");
  await rig.queue.idle();
  assert.match(rig.queue.status().last_error ?? "", /^Cannot write to .*mirror: a file has its name$/);
  rmSync(rig.dir);
  rig.offer("/a.txt", "x");
  await rig.queue.idle();
  rmSync(rig.dir, { recursive: true });
  rig.offer("/b.txt", "x");
  await rig.queue.idle();
  assert.deepEqual(rig.files(), ["a.test/b.txt", "a.test/b.txt.meta.json"]);
  assert.equal(rig.queue.status().files_dropped, 1);
});

test("a resting mirror releases its directory once the queue is written, and resumes with the next response", async () => {
  await using rig = await startQueue();
  const open = (): string[] =>
    readdirSync("/proc/self/fd").flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`)].filter((path) => path.startsWith(rig.dir));
      } catch {
        return [];
      }
    });
  for (let index = 0; index < 50; index += 1) rig.offer(`/${index}.txt`, "x");
  rig.queue.rest();
  await rig.queue.idle();
  assert.equal(rig.queue.status().files_written, 50);
  if (process.platform === "linux") await waitUntil(() => open().length === 0);
  rig.offer("/again.txt", "x");
  await rig.queue.idle();
  assert.deepEqual([rig.queue.status().files_written, rig.queue.status().files_dropped], [51, 0]);
  if (process.platform === "linux") assert.ok(open().length > 0);
});

test("closing writes the queue", async () => {
  await using rig = await startQueue();
  for (let index = 0; index < 200; index += 1) rig.offer(`/${index}.txt`, "x");
  rig.offer("/large.txt", "x".repeat(2_000_000), { isStored: true });
  await rig.queue.close(10_000);
  assert.equal(rig.queue.status().files_written, 201);
  assert.equal(rig.files().length, 402);
});
