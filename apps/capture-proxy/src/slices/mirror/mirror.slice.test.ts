import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { MirrorStatus } from "@headworks/capture-contract";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { startApi } from "../../../test/api-rig.ts";
import { startProxyRig } from "../../../test/proxy-rig.ts";
import type { ProxyRig } from "../../../test/proxy-rig.ts";
import { createMirrorSlice } from "./mirror.slice.ts";

const startMirrorApi = (flags: Record<string, string> = {}) =>
  startApi({ flags, slices: (host) => [createMirrorSlice(host)] });

test("the mirror is off, and its settings have defaults, survive in the file and reset each other never", async () => {
  await using api = await startMirrorApi();
  const get = async () => (await api.call("GET", "/api/mirror")).json as MirrorStatus;
  const first = await get();
  assert.deepEqual(first, {
    enabled: false,
    output_dir: join(api.directory.path, "mirror"),
    host_filter: null,
    save_request_bodies: false,
    files_written: 0,
    bytes_written: 0,
    files_dropped: 0,
    queued_files: 0,
    queued_bytes: 0,
    last_error: null,
    last_error_at: null,
    writing: true,
  });
  const patch = async (body: object) => (await api.call("PATCH", "/api/mirror/config", body)).json as MirrorStatus;
  await patch({ output_dir: "/srv/mirror", host_filter: ["*.B.test", "a.test"] });
  await patch({ save_request_bodies: true });
  const changed = await patch({ enabled: true });
  assert.deepEqual(
    [changed.enabled, changed.output_dir, changed.host_filter, changed.save_request_bodies],
    [true, "/srv/mirror", ["*.b.test", "a.test"], true],
  );
  const stored = () => JSON.parse(readFileSync(api.directory.file("config.json"), "utf8")) as { mirror: object };
  assert.deepEqual(stored().mirror, {
    output_dir: "/srv/mirror",
    host_filter: ["*.b.test", "a.test"],
    save_request_bodies: true,
    enabled: true,
  });
  assert.equal((await patch({ host_filter: [] })).host_filter, null);
  assert.equal((await patch({ output_dir: null })).output_dir, first.output_dir);
  // Sending back the status changes nothing, and the default directory stays a default.
  assert.deepEqual(await patch(await get()), await get());
  assert.equal(api.settings.configured.mirror.output_dir, null);
});

test("a toggle sets with a body and flips without one", async () => {
  await using api = await startMirrorApi();
  const toggle = async (body?: object) => (await api.call("POST", "/api/mirror/toggle", body)).json;
  assert.deepEqual(await toggle({ enabled: true }), { enabled: true, message: "Mirroring enabled" });
  assert.deepEqual(await toggle({ enabled: true }), { enabled: true, message: "Mirroring enabled" });
  assert.deepEqual(await toggle(), { enabled: false, message: "Mirroring disabled" });
  assert.deepEqual(await toggle({ enabled: false }), { enabled: false, message: "Mirroring disabled" });
});

test("settings that are not understood are refused with the field, and nothing is applied", async () => {
  await using api = await startMirrorApi();
  const cases: readonly (readonly [body: object, path: string])[] = [
    [{ enabled: "yes" }, "body/enabled"],
    [{ output_dir: "relative", enabled: true }, "body/output_dir"],
    [{ host_filter: "a.test" }, "body/host_filter"],
    [{ host_filter: ["a test"], save_request_bodies: true }, "body/host_filter"],
    [{ directory: "/x" }, "body/directory"],
    [{ output_dir: api.directory.path }, "body/output_dir"],
    [{ output_dir: "/", enabled: true }, "body/output_dir"],
    [{ output_dir: api.directory.file("certs") }, "body/output_dir"],
  ];
  for (const [body, path] of cases) {
    const { status, json } = await api.call("PATCH", "/api/mirror/config", body);
    const refusal = json as { code: string; details: { path: string }[] };
    assert.deepEqual(
      [status, refusal.code, refusal.details[0]?.path],
      [400, "VALIDATION_ERROR", path],
      JSON.stringify(body),
    );
  }
  assert.equal(existsSync(api.directory.file("config.json")), false);
});

test("the directory of another feature in the data directory may be chosen, and so may what was shown", async () => {
  await using api = await startMirrorApi();
  for (const name of ["mock-bodies", "mirror"]) {
    const { status } = await api.call("PATCH", "/api/mirror/config", { output_dir: api.directory.file(name) });
    assert.equal(status, 200, name);
  }
});

test("a directory of Weir's own, chosen by a flag or behind a link, gets no files, and the status says why", async () => {
  await using directory = await temporaryDirectory();
  const link = directory.file("link");
  await using rig = await startProxyRig({ "mirror-enabled": "true", "mirror-output-dir": "/" });
  const atStart = await rig.api<MirrorStatus>("GET", "/mirror");
  assert.match(atStart.last_error ?? "", /^The output directory must neither be nor contain /u);
  assert.equal(atStart.writing, false);
  await rig.api("PATCH", "/mirror/config", { enabled: false, output_dir: link });
  const certificates = dirname(rig.proxy.certificatePath);
  symlinkSync(certificates, link);
  await rig.api("POST", "/mirror/toggle", { enabled: true });
  const behindLink = await rig.api<MirrorStatus>("GET", "/mirror");
  assert.match(behindLink.last_error ?? "", /^The output directory must neither be nor contain .*certs/u);
  await rig.send({ path: "/weir-ca.pem" });
  await rig.api("PATCH", "/mirror/config", { output_dir: directory.file("other") });
  await rig.send({ path: "/last.txt" });
  assert.deepEqual((await written(rig, 1)).files_written, 1);
  assert.deepEqual(readdirSync(certificates).sort(), ["weir-ca-key.pem", "weir-ca.pem"]);
});

async function written(rig: ProxyRig, files: number): Promise<MirrorStatus> {
  let status = await rig.api<MirrorStatus>("GET", "/mirror");
  await waitUntil(async () => {
    status = await rig.api<MirrorStatus>("GET", "/mirror");
    return status.files_written + status.files_dropped >= files;
  });
  return status;
}

test("responses of any size are written while the mirror is on, those passed through are not", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await startProxyRig();
  const large = Buffer.alloc(3_000_000, "large body ");
  rig.respond = (seen, response) => {
    if (seen.url === "/none.txt") return void response.writeHead(204).end();
    if (seen.url === "/large.bin") return void response.end(large);
    if (seen.url === "/page") {
      response.writeHead(200, {
        "content-type": "text/html",
        "content-encoding": "gzip",
        "set-cookie": ["a=1", "b=2"],
      });
      return void response.end(gzipSync("<p>hello"));
    }
    response.end(`answer to ${seen.url}`);
  };
  await rig.send({ path: "/before.txt" });
  const config = { enabled: true, output_dir: directory.path, save_request_bodies: true };
  await rig.api("PATCH", "/mirror/config", config);
  await rig.send({ path: "/small.txt?q=1", method: "POST", body: "question" });
  await rig.send({ path: "/page" });
  await rig.send({ path: "/none.txt" });
  await rig.send({ path: "/large.bin" });
  const status = await written(rig, 4);
  assert.deepEqual([status.files_written, status.files_dropped, status.last_error], [4, 0, null]);
  const file = (name: string): Buffer => readFileSync(join(directory.path, "127.0.0.1", name));
  assert.equal(file("small.txt").toString(), "answer to /small.txt?q=1");
  assert.equal(file("small.txt.request").toString(), "question");
  assert.equal(file("page/index.html").toString(), "<p>hello");
  assert.ok(file("large.bin").equals(large));
  assert.equal(status.bytes_written, 24 + 8 + 8 + large.length);
  const meta = JSON.parse(file("page/index.html.meta.json").toString()) as Record<string, unknown>;
  assert.deepEqual(
    [meta["url"], meta["method"], meta["status_code"], meta["truncated"]],
    [`http://127.0.0.1:${rig.originPort}/page`, "GET", 200, false],
  );
  assert.match(String(meta["timestamp"]), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  assert.ok(Number(meta["duration_ms"]) > 0);
  assert.equal((meta["headers"] as Record<string, string>)["content-encoding"], "gzip");
  const cookies = (meta["headers_list"] as [string, string][]).filter(([name]) => name.toLowerCase() === "set-cookie");
  assert.deepEqual(
    cookies.map(([, value]) => value),
    ["a=1", "b=2"],
  );
  for (const name of ["before.txt", "none.txt"]) {
    assert.equal(existsSync(join(directory.path, "127.0.0.1", name)), false);
  }

  await rig.api("PATCH", "/mirror/config", { host_filter: ["*.other.test"] });
  await rig.send({ path: "/filtered.txt" });
  await rig.api("PATCH", "/mirror/config", { host_filter: ["127.0.0.1"] });
  await rig.api("POST", "/capture/toggle", { enabled: false });
  await rig.send({ path: "/passthrough.txt" });
  await rig.api("POST", "/capture/toggle", { enabled: true });
  await rig.send({ path: "/recorded.txt" });
  await written(rig, 5);
  const exists = (name: string): boolean => existsSync(join(directory.path, "127.0.0.1", name));
  assert.deepEqual(["filtered.txt", "passthrough.txt", "recorded.txt"].map(exists), [false, false, true]);
});

test("a body over max_body_size is cut and marked", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await startProxyRig({
    "max-body-size": "1000",
    "mirror-enabled": "true",
    "mirror-output-dir": directory.path,
  });
  rig.respond = (_seen, response) => void response.end("x".repeat(1001));
  await rig.send({ path: "/cut.txt" });
  await written(rig, 1);
  const path = join(directory.path, "127.0.0.1", "cut.txt");
  assert.equal(readFileSync(path).length, 1000);
  assert.equal((JSON.parse(readFileSync(`${path}.meta.json`, "utf8")) as { truncated: boolean }).truncated, true);
});

test("a stopping proxy writes the queue", async () => {
  await using directory = await temporaryDirectory();
  const rig = await startProxyRig({ "mirror-enabled": "true", "mirror-output-dir": directory.path });
  try {
    rig.respond = (_seen, response) => void response.end("x".repeat(400_000));
    for (let index = 0; index < 5; index += 1) await rig.send({ path: `/${index}.txt` });
  } finally {
    await rig[Symbol.asyncDispose]();
  }
  for (let index = 0; index < 5; index += 1) {
    assert.equal(readFileSync(join(directory.path, "127.0.0.1", `${index}.txt`)).length, 400_000);
  }
});
