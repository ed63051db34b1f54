import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { CaptureSession } from "@headworks/capture-contract";
import { startOrigin, temporaryDirectory } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import { MAIN, serveWeir, weir } from "./cli-rig.ts";
import type { ServingWeir } from "./cli-rig.ts";

const OURS = [process.execPath, MAIN];

describe("weir run with a Weir that is running", () => {
  let served: ServingWeir;
  let directory: TemporaryDirectory;
  before(async () => {
    served = await serveWeir();
    directory = await temporaryDirectory();
  });
  after(async () => {
    await served[Symbol.asyncDispose]();
    await directory.remove();
  });
  const run = async (...args: readonly string[]) =>
    await weir(["run", ...args], { env: { WEIR_API_URL: served.api, SSL_CERT_FILE: "/users/own.pem" } });
  const sessions = async (): Promise<readonly CaptureSession[]> =>
    (await (await fetch(`${served.api}/api/sessions`)).json()) as CaptureSession[];
  const active = async (): Promise<CaptureSession | undefined> => (await sessions()).find((each) => each.is_current);

  test("while a run has a session to itself, a second one that wants one is refused and changes nothing", async () => {
    await using origin = await startOrigin({ handler: (_request, response) => void response.end("ok") });
    const [outer, inner] = [directory.file("outer.har"), directory.file("inner.har")];
    const first = await active();
    // The second runs inside the first, so each is certainly there while the other is.
    const script = `"$@" run --har ${inner} -- true; echo $?; "$@" run -- ${process.execPath} -e 'fetch("${origin.url}")'`;
    const result = await run("--har", outer, "--", "sh", "-c", script, "sh", ...OURS);
    assert.deepEqual([result.code, result.stdout], [0, "1\n"], result.stderr);
    assert.match(result.stderr, /^weir: Another `weir run` has the session "weir run sh .*" at http.* to itself: .*\n/);
    assert.equal(existsSync(inner), false);
    const { log } = JSON.parse(await readFile(outer, "utf8")) as { log: { entries: { request: { url: string } }[] } };
    assert.deepEqual(
      log.entries.map(({ request }) => request.url),
      [`${origin.url}/`],
    );
    const left = await sessions();
    assert.deepEqual([left.length, left.flatMap(({ tags }) => tags)], [2, []]);
    assert.equal((await active())?.id, first?.id);
  });

  test("a session that another one replaced during the run is not reported as if it were whole", async () => {
    const other = (await (await fetch(`${served.api}/api/sessions`, { method: "POST" })).json()) as CaptureSession;
    const switching = [...OURS, "sessions", "switch", other.id];
    const file = directory.file("replaced.har");
    const har = await run("--har", file, "--", ...switching);
    assert.equal(har.code, 1);
    assert.match(
      har.stderr,
      /weir: Another session became active at http.* during the run, so the session ".*" may lack/,
    );
    assert.equal(existsSync(file), false);
    const first = (await sessions()).find(({ id }) => id !== other.id)?.id ?? "";
    await fetch(`${served.api}/api/sessions/${first}/switch`, { method: "POST" });
    const named = await run("--session", "named", "--", ...switching);
    assert.equal(named.code, 0);
    assert.match(named.stderr, /so the session "named" may lack some of its traffic\n$/);
    assert.equal((await active())?.id, other.id);
    assert.deepEqual(
      (await sessions()).flatMap(({ tags }) => tags),
      [],
    );
  });

  test("where capture is off, that is said before the program runs", async () => {
    const toggle = async (): Promise<void> =>
      void (await fetch(`${served.api}/api/capture/toggle`, { method: "POST" }));
    await toggle();
    const { code, stderr } = await run("--har", directory.file("off.har"), "--", "sh", "-c", "echo ran >&2");
    await toggle();
    assert.equal(code, 0);
    assert.match(stderr, /^weir: Capture is off, .*: `weir capture enable --api-url http.*` switches it on\nran\n/);
  });

  test("where interception is off, a program gets the proxy, and trusts what it did", async () => {
    const configure = async (intercept: boolean): Promise<void> => {
      const body = JSON.stringify({ intercept_https: intercept });
      const headers = { "content-type": "application/json" };
      assert.equal((await fetch(`${served.api}/api/config`, { method: "PATCH", headers, body })).status, 200);
    };
    await configure(false);
    const result = await run("--", "sh", "-c", 'echo "$HTTPS_PROXY $SSL_CERT_FILE $JAVA_TOOL_OPTIONS"');
    await configure(true);
    assert.equal(result.code, 0, result.stderr);
    assert.ok(result.stdout.startsWith(`${served.proxy} /users/own.pem -Dhttp.proxyHost=`), result.stdout);
    assert.ok(!result.stdout.includes("trustStore"));
  });
});
