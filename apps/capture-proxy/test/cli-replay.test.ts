import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import type { EntryDiff, ReplayBatch, ReplayResult, SavedRequest } from "@headworks/capture-contract";
import { presentDiff } from "#cli/diff.ts";
import { presentBatch } from "#cli/replay.ts";
import { runInside, window } from "./cli-rig.ts";
import type { CommandResult } from "./cli-rig.ts";
import { bytesOf, startOrigin, startReplayRig } from "./replay-rig.ts";

const cleanups: (() => unknown)[] = [];
const cleanup = (one: () => unknown): void => void cleanups.push(one);
after(async () => {
  for (const one of cleanups.reverse()) await one();
});

const rig = await startReplayRig(cleanup);
let version = 1;
const origin = await startOrigin(cleanup, async (incoming, response) => {
  const body = (await bytesOf(incoming)).toString();
  const { method, url, headers } = incoming;
  if (url === "/drop") return void incoming.socket.destroy();
  response.writeHead(url === "/missing" ? 404 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify({ method, url, a: headers["x-a"] ?? null, body, version }));
});

const weir = (...args: string[]): Promise<CommandResult> => runInside([...args, "--api-url", rig.proxy.addresses.api]);

/** Runs a command that must end with the given code. */
async function ending(code: number, ...args: string[]): Promise<CommandResult> {
  const result = await weir(...args);
  assert.equal(result.code, code, `${args.join(" ")}: ${result.stdout}${result.stderr}`);
  return result;
}

test("run replays a request with the flags' modifications, and shows the response", async () => {
  const id = await rig.capture(`${origin}/p`, { method: "POST", headers: { "X-A": "1", "X-Out": "1" }, body: "old" });
  const file = join(rig.dataDir, "body.txt");
  writeFileSync(file, "from {{who}}");
  const shown = await ending(
    0,
    "replay",
    "run",
    id,
    "-H",
    "X-A: 2: 3",
    "--remove-header",
    "x-out",
    "--body-file",
    file,
    "--var",
    "who=a=b",
  );
  assert.match(shown.stdout, /response +200 OK/u);
  const body = JSON.parse(shown.stdout.slice(shown.stdout.indexOf("{"))) as Record<string, unknown>;
  assert.deepEqual([body["a"], body["body"], body["url"]], ["2: 3", "from a=b", "/p"]);
  const raw = await ending(0, "replay", "run", id, "--url", `${origin}/q`, "-X", "PUT", "--text", "new", "--json");
  const result = JSON.parse(raw.stdout) as ReplayResult;
  assert.deepEqual([result.request.method, result.request.url, result.request.body], ["PUT", `${origin}/q`, "new"]);
});

test("run exits with 5 for what --fail-on names, and with 0 otherwise", async () => {
  const id = await rig.capture(`${origin}/v`);
  await ending(0, "replay", "run", id, "--fail-on", "change");
  version += 1;
  const changed = await ending(5, "replay", "run", id, "--diff", "--fail-on", "change");
  assert.match(changed.stdout, /- \/version: 1\n\+ \/version: 2/u);
  await ending(0, "replay", "run", id, "--diff");
  await ending(0, "replay", "run", id, "--diff", "--ignore-path", "$.version", "--fail-on", "change");
  await ending(0, "replay", "run", id, "--diff", "--shape", "--fail-on", "change");
  await ending(0, "replay", "run", id, "--fail-on", "status");
  await ending(5, "replay", "run", id, "--fail-on", "status", "--url", `${origin}/missing`);
  await ending(5, "replay", "run", id, "--fail-on", "error", "--url", `${origin}/missing`);
  await ending(5, "replay", "run", id, "--fail-on", "error", "--url", `${origin}/drop`);
  await ending(0, "replay", "run", id, "--fail-on", "error");
});

test("invalid arguments are usage errors, and rejections by the service are failures", async () => {
  for (const args of [
    ["x", "-H", "no colon"],
    ["x", "--var", "=v"],
    ["x", "--max-redirects", "21"],
    ["x", "--text", "a", "--body-file", "b"],
    ["x", "--fail-on", "weather"],
  ]) {
    await ending(2, "replay", "run", ...args);
  }
  for (const args of [
    ["-n", "0"],
    ["-n", "10001"],
    ["-c", "101"],
    ["--delay-ms", "x"],
  ]) {
    await ending(2, "replay", "batch", "x", ...args);
  }
  const missing = await ending(1, "replay", "run", "missing");
  assert.match(missing.stderr, /Saved request not found/u);
  await ending(1, "replay", "run", "x", "--body-file", join(rig.dataDir, "none"));
  await ending(1, "diff", "missing", "missing");
  await ending(2, "diff");
});

test("requests are saved, listed, updated and deleted by name", async () => {
  const entry = await rig.capture(`${origin}/kept`);
  await ending(0, "replay", "save", entry, "-n", "Kept", "--tags", "a,b", "--collection", "C");
  await ending(
    0,
    "replay",
    "create",
    "--request-url",
    `${origin}/made`,
    "--request-method",
    "POST",
    "--request-text",
    "hi",
  );
  const list = await ending(0, "replay", "list", "--json");
  const saved = JSON.parse(list.stdout) as SavedRequest[];
  assert.deepEqual(
    saved.map(({ request }) => request.url),
    [`${origin}/made`, `${origin}/kept`],
  );
  assert.match((await ending(0, "replay", "list", "--collection", "C")).stdout, /Kept/u);
  const [made] = saved;
  assert.match((await ending(0, "replay", "run", made?.id ?? "")).stdout, /"body":"hi"/u);
  await ending(0, "replay", "update", made?.id ?? "", "--request-url", `${origin}/other`, "-n", "Other");
  assert.match((await ending(0, "replay", "show", made?.id ?? "")).stdout, /\/other/u);
  assert.match((await ending(0, "replay", "history")).stdout, /\/made/u);
  await ending(0, "replay", "delete", made?.id ?? "");
  await ending(1, "replay", "show", made?.id ?? "");
  await ending(0, "replay", "history-clear");
  assert.equal((await ending(0, "replay", "history")).stdout, "");
});

test("batch waits for the end, shows statistics, and fails on failures on request", async () => {
  const id = await rig.capture(`${origin}/b`);
  const shown = await ending(0, "replay", "batch", id, "-n", "12", "-c", "3", "--fail-on", "error");
  assert.match(shown.stdout, /sent +12 of 12, 12 with a response, 0 failed/u);
  assert.match(shown.stdout, /p95 +\d/u);
  const json = await ending(
    5,
    "replay",
    "batch",
    id,
    "-n",
    "4",
    "--url",
    `${origin}/drop`,
    "--fail-on",
    "error",
    "--json",
  );
  const batch = JSON.parse(json.stdout) as ReplayBatch;
  assert.deepEqual([batch.total, batch.failed, batch.errors[0]?.code], [4, 4, "UPSTREAM_CLOSED"]);
  await ending(0, "replay", "batch", id, "--url", `${origin}/drop`);
});

test("diff compares two entries, or a replay with its original", async () => {
  const left = await rig.capture(`${origin}/d`, { headers: { "X-A": "1" } });
  const right = await rig.capture(`${origin}/d`, { headers: { "X-A": "2" } });
  const shown = await ending(0, "diff", left, right);
  assert.match(shown.stdout, /- request field X-A: 1\n\+ request field X-A: 2/u);
  assert.match(shown.stdout, /body differs \(json/u);
  await ending(5, "diff", left, right, "--fail-on", "change");
  await ending(0, "diff", left, right, "--fail-on", "status");
  await ending(0, "diff", left, right, "--ignore-path", "/a", "--fail-on", "change");
  await ending(0, "diff", left, left, "--fail-on", "change");
  const replayed = JSON.parse((await ending(0, "replay", "run", left, "--json")).stdout) as ReplayResult;
  version += 1;
  assert.equal((JSON.parse((await ending(0, "diff", replayed.id, "--json")).stdout) as EntryDiff).left_id, left);
  await ending(1, "diff", left);
});

const NOTHING = { changed: [], ignored: [] };
const SAME: EntryDiff = {
  same: true,
  request_same: true,
  response_same: true,
  left_id: "a",
  right_id: "b",
  method: null,
  url: null,
  status: null,
  failure: null,
  request_headers: NOTHING,
  response_headers: NOTHING,
  request_body: { kind: "none", left_size: null, right_size: null },
  response_body: { kind: "same", left_size: 1, right_size: 1 },
  timings: { duration: { left: 10, right: 20, delta: 10 } },
};

test("a comparison cannot inject terminal control characters", () => {
  const shown = presentDiff(
    {
      ...SAME,
      same: false,
      url: { left: "http://a/\x1b[2J", right: null },
      response_headers: {
        changed: [{ name: "X", left: ["\x9b1m"], right: null }],
        ignored: [{ name: "Da\nte", left: null, right: [] }],
      },
      response_body: {
        kind: "text",
        left_size: 1,
        right_size: 2,
        parts: [
          { kind: "same", left_line: 1, right_line: 1, line_count: 1, lines: [] },
          { kind: "removed", left_line: 2, right_line: 2, line_count: 1, lines: ["\x1b]0;x\x07"] },
        ],
      },
    },
    window(80),
  );
  assert.doesNotMatch(shown, /[\x00-\x09\x0b-\x1f\x7f-\x9f]/u);
  assert.match(shown, /… 1 line\n/u);
});

test("equal entries are reported as equal, and a long list is cut", () => {
  assert.match(presentDiff(SAME, window(80)), /^Identical\n/u);
  const ignored = [{ name: "date", left: ["a"], right: ["b"] }];
  const almost = { ...SAME, response_headers: { changed: [], ignored } };
  assert.match(presentDiff(almost, window(80)), /^Identical except for ignored differences\n/u);
  const changes = Array.from({ length: 150 }, (_, index) => ({
    path: `/${index}`,
    op: "add" as const,
    right: "x".repeat(500),
  }));
  const shown = presentDiff(
    { ...SAME, same: false, response_body: { kind: "json", left_size: 1, right_size: 2, changes } },
    window(80),
  );
  assert.equal(shown.split("\n").filter((line) => line.startsWith("+")).length, 100);
  assert.match(shown, /… more, see --json/u);
});

test("durations of a batch are drawn", () => {
  const batch = {
    id: "b",
    total: 3,
    iterations: 3,
    succeeded: 3,
    failed: 0,
    statuses: { 200: 3 },
    errors: [],
    histogram: [
      { from_ms: 1, to_ms: 2, count: 2 },
      { from_ms: 2, to_ms: 3, count: 1 },
    ],
  } as unknown as ReplayBatch;
  assert.match(presentBatch(batch, window(100)), /≤ 2\.0 ms +█{40} 2\n≤ 3\.0 ms +█{20} 1\n/u);
});
