import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { startRewrites } from "./rewrites-rig.ts";
import type { RewritesRig } from "./rewrites-rig.ts";

let rig: RewritesRig;
before(async () => {
  rig = await startRewrites();
  mkdirSync(rig.data.file("map-files/site/css"), { recursive: true });
  writeFileSync(rig.data.file("map-files/a.json"), '{"mapped":true}');
  writeFileSync(rig.data.file("map-files/site/index.html"), "<h1>mapped</h1>");
  writeFileSync(rig.data.file("map-files/site/css/a.css"), "h1{}");
  writeFileSync(rig.data.file("other.txt"), "other");
});
after(() => rig[Symbol.asyncDispose]());

test("a request is answered from a file without the origin, and a rule for both directions does it once", async () => {
  await rig.reset();
  await rig.rule(
    [
      { type: "map_to_file", path: "a.json" },
      { type: "set_header", name: "X-M", value: "1" },
    ],
    {
      name: "local",
    },
  );
  const { length } = rig.origin.requests;
  const response = await rig.client.fetch({ url: `${rig.origin.url}/any`, method: "POST", body: "ignored" });
  assert.deepEqual([response.status, response.body.toString()], [200, '{"mapped":true}']);
  assert.equal(response.header("content-type"), "application/json");
  assert.equal(response.header("cache-control"), "no-store");
  assert.equal(response.header("x-m"), "1");
  assert.equal(rig.origin.requests.length, length);
  const path = rig.data.file("map-files/a.json");
  assert.deepEqual(await rig.trace(), [
    `local request: answered from ${path} (15 bytes, application/json)`,
    "local response: the response already comes from the file; set header X-M: 1",
  ]);
  const head = await rig.client.fetch({ url: `${rig.origin.url}/any`, method: "HEAD" });
  assert.deepEqual([head.status, head.body.length, head.header("content-length")], [200, 0, "15"]);
});

test("a host that does not exist is answered from a folder, paths below the prefix alone", async () => {
  await rig.reset();
  await rig.rule(
    { type: "map_to_file", path: "site/", prefix: "/app" },
    { direction: "request", condition: { type: "host", pattern: "nowhere.invalid" } },
  );
  const get = async (path: string): Promise<[number, string, string | undefined]> => {
    const response = await rig.client.fetch(`http://nowhere.invalid${path}`);
    return [response.status, response.body.toString(), response.header("content-type")];
  };
  assert.deepEqual(await get("/app/?v=1"), [200, "<h1>mapped</h1>", "text/html; charset=utf-8"]);
  assert.deepEqual(await get("/app/css/a.css"), [200, "h1{}", "text/css; charset=utf-8"]);
  const [status, text] = await get("/app/none.js");
  assert.equal(status, 404);
  assert.match(text, /site\/none\.js does not exist/);
  assert.equal((await get("/application/"))[0], 502);
  assert.match((await rig.trace()).join(), /the path does not begin with \/app; matched, changed nothing/);
});

test("a response gets a file as its body, regardless of its coding and range, and keeps its status", async () => {
  await rig.reset((request, response) => {
    response.statusCode = request.url === "/part" ? 206 : 500;
    response.setHeader("Content-Range", "bytes 0-1/2");
    response.setHeader("Content-Encoding", "gzip");
    response.end(gzipSync("from the origin"));
  });
  await rig.rule({ type: "map_to_file", path: "site/index.html" }, { direction: "response" });
  const failed = await rig.client.fetch(`${rig.origin.url}/failed`);
  assert.deepEqual([failed.status, failed.body.toString()], [500, "<h1>mapped</h1>"]);
  assert.deepEqual([failed.header("content-encoding"), failed.header("content-range")], [undefined, undefined]);
  assert.equal(failed.header("content-length"), "15");
  assert.equal((await rig.client.fetch(`${rig.origin.url}/part`)).status, 200);
});

test("a missing file gives a clear response, also for response rules", async () => {
  await rig.reset();
  await rig.rule({ type: "map_to_file", path: "none.html" }, { direction: "response" });
  const response = await rig.client.fetch(`${rig.origin.url}/`);
  assert.deepEqual(
    [response.status, response.body.toString()],
    [404, "Weir: a rewrite rule maps this URL to a file, but none.html does not exist.\n"],
  );
  assert.deepEqual(await rig.trace(), ["rule response: answered with 404: none.html does not exist"]);
});

test("files outside the configured directories are rejected at creation, and after the directory was removed from the settings", async () => {
  await rig.reset();
  const path = rig.data.file("other.txt");
  const create = () =>
    rig.api("POST", "/rewrites", {
      name: "x",
      condition: { type: "all" },
      direction: "request",
      rewrites: [{ type: "map_to_file", path }],
    });
  const refused = await create();
  assert.equal(refused.status, 400);
  assert.equal((refused.json as { details: { path: string }[] }).details[0]?.path, "body/rewrites/0/path");
  assert.equal((await rig.api("PATCH", "/config", { map_file_dirs: [rig.data.path] })).status, 200);
  const created = await create();
  assert.equal(created.status, 201, JSON.stringify(created.json));
  assert.equal((await rig.client.fetch(`${rig.origin.url}/`)).body.toString(), "other");
  await rig.api("PATCH", "/config", { map_file_dirs: [] });
  const response = await rig.client.fetch(`${rig.origin.url}/`);
  assert.equal(response.status, 404);
  assert.doesNotMatch(response.body.toString(), /^other/);
  assert.equal((await rig.api("PATCH", "/config", { map_file_dirs: [join("relative", "dir")] })).status, 400);
});
