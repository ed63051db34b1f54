import assert from "node:assert/strict";
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

  const rowsOf = async (sessionId: string): Promise<string[]> => {
    const rows = (await (await fetch(`${served.api}/api/traffic?session_id=${sessionId}&limit=1000`)).json()) as {
      request: { url: string };
    }[];
    return rows.map(({ request }) => new URL(request.url).pathname).toReversed();
  };
  const harPaths = async (file: string): Promise<string[]> => {
    const { log } = JSON.parse(await readFile(file, "utf8")) as { log: { entries: { request: { url: string } }[] } };
    return log.entries.map(({ request }) => new URL(request.url).pathname);
  };

  test("runs at the same time report themselves alone; the active session stays and keeps what others send", async () => {
    await using origin = await startOrigin({ handler: (_request, response) => void response.end("ok") });
    const [outer, inner] = [directory.file("outer.har"), directory.file("inner.har")];
    const first = await active();
    const fetching = (path: string): string => `${process.execPath} -e 'fetch("${origin.url}${path}")'`;
    // The second runs inside the first, and another client sends in between, so that all overlap.
    const script = `${fetching("/outer-1")}; "$@" run --har ${inner} -- ${fetching("/inner")}; http_proxy=${served.proxy} ${fetching("/other")}; ${fetching("/outer-2")}`;
    const result = await run("--har", outer, "--session", "outer", "--", "sh", "-c", script, "sh", ...OURS);
    assert.equal(result.code, 0, result.stderr);
    assert.deepEqual(await harPaths(outer), ["/outer-1", "/outer-2"]);
    assert.deepEqual(await harPaths(inner), ["/inner"]);
    assert.equal((await active())?.id, first?.id);
    assert.deepEqual(await rowsOf(first?.id ?? ""), ["/other"]);
    const named = (await sessions()).find(({ name }) => name === "outer");
    assert.deepEqual(await rowsOf(named?.id ?? ""), ["/outer-1", "/outer-2"]);
  });

  test("a session that becomes active during a run takes nothing from it", async () => {
    await using origin = await startOrigin({ handler: (_request, response) => void response.end("ok") });
    const first = await active();
    const other = (await (await fetch(`${served.api}/api/sessions`, { method: "POST" })).json()) as CaptureSession;
    const file = directory.file("switched.har");
    const script = `"$@" sessions switch ${other.id} >&2; ${process.execPath} -e 'fetch("${origin.url}/mine")'`;
    const { code, stderr } = await run("--har", file, "--", "sh", "-c", script, "sh", ...OURS);
    assert.equal(code, 0, stderr);
    assert.deepEqual(await harPaths(file), ["/mine"]);
    assert.equal((await active())?.id, other.id);
    assert.deepEqual(await rowsOf(other.id), []);
    await fetch(`${served.api}/api/sessions/${first?.id}/switch`, { method: "POST" });
  });

  test("where capture is off, that is said before the program runs", async () => {
    const toggle = async (): Promise<void> =>
      void (await fetch(`${served.api}/api/capture/toggle`, { method: "POST" }));
    await toggle();
    const { code, stderr } = await run("--har", directory.file("off.har"), "--", "sh", "-c", "echo ran >&2");
    await toggle();
    assert.equal(code, 0);
    assert.match(stderr, /^weir: Capture is off, .* with `weir capture enable --api-url http.*`\nran\n/);
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
