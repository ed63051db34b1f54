import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { SessionDiff } from "@headworks/capture-contract";
import { runInside } from "./cli-rig.ts";
import { bytesOf, startOrigin, startReplayRig } from "./replay-rig.ts";

const cleanups: (() => unknown)[] = [];
const cleanup = (one: () => unknown): void => void cleanups.push(one);
after(async () => {
  for (const one of cleanups.reverse()) await one();
});

const rig = await startReplayRig(cleanup);
let release = 1;
const origin = await startOrigin(cleanup, async (incoming, response) => {
  await bytesOf(incoming);
  const isBroken = incoming.url?.startsWith("/broken") === true && release === 2;
  response.writeHead(isBroken ? 500 : 200, {
    "content-type": "application/json",
    "x-request-id": String(Math.random()),
  });
  const [path = ""] = (incoming.url ?? "").split("?");
  response.end(JSON.stringify({ path, at: performance.now(), price: path === "/price" ? release : 0 }));
});

/** Visits paths in a new session and returns its id. */
async function session(name: string, paths: readonly string[]): Promise<string> {
  const { json } = await rig.call<{ id: string }>("POST", "/sessions", { name });
  assert.equal((await rig.call("POST", `/sessions/${json.id}/switch`)).status, 200);
  for (const path of paths) await rig.capture(`${origin}${path}`);
  return json.id;
}

const left = await session("release 1", ["/same?a=1&b=2", "/price", "/broken", "/gone", "/same?a=1&b=2"]);
release = 2;
const right = await session("release 2", ["/price", "/new", "/same?b=2&a=1", "/broken"]);

const compare = (order: object) => rig.call<SessionDiff & { error: string }>("POST", "/replay/diff/sessions", order);
const pathsOf = (rows: readonly { url: string }[]): string[] => rows.map(({ url }) => url.slice(origin.length));

test("two sessions are compared request by request: differences, and requests of only one side", async () => {
  const { status, json } = await compare({ left, right, ignore_paths: ["$.at"] });
  assert.equal(status, 200, JSON.stringify(json));
  assert.deepEqual(
    json.changed.map((pair) => [pathsOf([pair.left])[0], pair.left.status_code, pair.right.status_code, pair.differs]),
    [
      ["/price", 200, 200, ["body"]],
      ["/broken", 200, 500, ["status"]],
    ],
  );
  assert.deepEqual(pathsOf(json.only_left), ["/gone", "/same?a=1&b=2"]);
  assert.deepEqual(pathsOf(json.only_right), ["/new"]);
  assert.deepEqual(
    [json.same, json.left_count, json.right_count, json.pair_count, json.same_count, json.not_compared_count],
    [false, 5, 4, 3, 1, 0],
  );
});

test("a session equals itself, and reaching the limit of comparisons does not count as equal", async () => {
  const { json: itself } = await compare({ left, right: left });
  assert.deepEqual([itself.same, itself.same_count, itself.changed_count], [true, 5, 0]);
  const { json: cut } = await compare({ left, right: left, limit: 2 });
  assert.deepEqual([cut.same, cut.same_count, cut.not_compared_count], [false, 2, 3]);
});

test("a query narrows both sides", async () => {
  const { json } = await compare({ left, right, q: "path:/price", shape: true });
  assert.deepEqual([json.same, json.left_count, json.right_count, json.pair_count], [true, 1, 1, 1]);
});

test("errors of the order are named", async () => {
  const unknown = await compare({ left, right: "00000000-0000-4000-8000-000000000000" });
  assert.equal(unknown.status, 404);
  assert.match(unknown.json.error, /session not found/i);
  const query = await compare({ left, right, q: "status:" });
  assert.equal(query.status, 400);
  assert.match(query.json.error, /q: /);
  const path = await compare({ left, right, ignore_paths: ["$[?"] });
  assert.equal(path.status, 400);
});

test("weir diff --sessions shows differences, with an exit code on request", async () => {
  const command = ["diff", "--sessions", left, right, "--ignore-path", "$.at", "--api-url", rig.proxy.addresses.api];
  const shown = await runInside(command);
  assert.equal(shown.code, 0, shown.stderr);
  assert.match(shown.stdout, /^- GET .*\/gone {2}200$/m);
  assert.match(shown.stdout, /^\+ GET .*\/new {2}200$/m);
  assert.match(shown.stdout, /^~ GET .*\/broken {2}200 → 500 {2}status$/m);
  assert.match(shown.stdout, /^1 identical, 2 changed, 2 only left, 1 only right$/m);
  assert.equal((await runInside([...command, "--fail-on", "change"])).code, 5);
  const json = await runInside([...command, "--json"]);
  assert.equal((JSON.parse(json.stdout) as SessionDiff).pair_count, 3);
  const alone = await runInside(["diff", "--sessions", left, "--api-url", rig.proxy.addresses.api]);
  assert.equal(alone.code, 2);
});
