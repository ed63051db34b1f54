import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { type CompiledScript, namesBody, scriptSet } from "#scripting/compiled-script.ts";
import { type HookCall, ScriptPipeline } from "#scripting/script-pipeline.ts";
import { createScriptRunner, type LoadedScript, type ScriptRunner } from "#scripting/script-runner.ts";
import type { Engine } from "./engine-harness.ts";
import { clientOf, http2Engine, startVersioned, valuesOf } from "./http2-rig.ts";
import type { OriginResponse, Received, SeenRequest, Sent, VersionedClient, VersionedOrigin } from "./http2-rig.ts";

const runAfter = (delayMs: number, callback: () => void): (() => void) => {
  const timer = setTimeout(callback, delayMs);
  return () => clearTimeout(timer);
};

const WAYS = [
  ["HTTP/1.1 in plain text", "1.1", "1.1", true],
  ["HTTP/1.1 in intercepted TLS", "1.1", "1.1", false],
  ["HTTP/2 to HTTP/2", "2", "2", false],
  ["HTTP/2 to HTTP/1.1", "2", "1.1", false],
] as const;

for (const [way, clientVersion, originVersion, isPlain] of WAYS) {
  describe(way, () => {
    let runner: ScriptRunner;
    let pipeline: ScriptPipeline;
    let engine: Engine & AsyncDisposable;
    let origin: VersionedOrigin;
    let client: VersionedClient;
    let calls: HookCall[] = [];
    let respond: (seen: SeenRequest) => OriginResponse = () => ({});
    before(async () => {
      runner = createScriptRunner({
        limits: () => ({ timeoutMs: 30_000, memoryLimitMb: 10, capturesConsole: true }),
        values: { all: () => new Map(), write: () => undefined },
        onProblem: () => undefined,
        after: runAfter,
      });
      const spool = { open: () => assert.fail("no large bodies") };
      pipeline = new ScriptPipeline({
        runner,
        limits: () => ({ bodyBytes: 1_000_000, waitMs: 10_000, after: runAfter }),
        sessionIdOf: () => "session",
        onCall: (call) => void calls.push(call),
        nowMs: () => Date.now(),
        spool,
        maxStoredBytes: () => 1_000_000,
      });
      engine = await http2Engine({ interceptors: [pipeline] });
      origin = await startVersioned(originVersion, (seen) => respond(seen), { isPlain });
      client = await clientOf(clientVersion, engine, origin.port, { isPlain });
    });
    after(async () => {
      await client[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      await origin[Symbol.asyncDispose]();
      await runner.close();
    });

    /** Sends a request with these scripts, in this order. */
    async function send(
      sources: readonly (string | { readonly source: string; readonly onError: CompiledScript["onError"] })[],
      sent: Sent = {},
      response: OriginResponse = { body: "body" },
    ): Promise<Received & { readonly seen: SeenRequest | undefined }> {
      respond = () => response;
      const scripts = sources.map((each, at): CompiledScript & LoadedScript => {
        const { source, onError } = typeof each === "string" ? { source: each, onError: "stop_chain" as const } : each;
        const hooks = new Set(
          (["on_request", "on_response"] as const).filter((hook) =>
            source.includes(hook === "on_request" ? "onRequest" : "onResponse"),
          ),
        );
        return {
          id: `${String(at)} ${source}`,
          name: `script ${String(at)}`,
          source,
          hooks,
          onError,
          usesBody: namesBody(source),
          matches: () => true,
        };
      });
      runner.load(scripts);
      pipeline.scripts = scriptSet(scripts);
      calls = [];
      origin.seen.length = 0;
      const received = await client.fetch(sent);
      return { ...received, seen: origin.seen[0] };
    }

    const BODY = `{"n":12345678901234567890,"text":"${"ü".repeat(200)}"}`;
    const FIELDS = [
      ["x-one", "1"],
      ["x-two", "gr\xfcn"],
      ["x-one", "2"],
    ] as const;

    test("messages that scripts only read stay byte for byte", async () => {
      const sent: Sent = { method: "POST", path: "/a/../b?x=%7e&x", fields: FIELDS, body: Buffer.from(BODY) };
      const response: OriginResponse = {
        status: 203,
        fields: [
          ["x-z", "1"],
          ["set-cookie", "a=1"],
          ["set-cookie", "b=2"],
          ["content-encoding", "gzip"],
        ],
        body: gzipSync(BODY),
      };
      const bare = await send([], sent, response);
      const read = await send(
        [
          `function onRequest(request) { console.log(request.body.length, request.json().n, request.query, Object.keys(request.headers).length) }
           function onResponse(request, response) { console.log(response.json().text.length, response.headers["set-cookie"]) }`,
        ],
        sent,
        response,
      );
      assert.deepEqual(
        calls.map(({ error }) => error),
        [null, null],
      );
      assert.equal(calls[1]?.console[0], "200 a=1, b=2");
      // An HTTP/2 origin adds its date.
      const dateless = (fields: readonly string[]): string[] =>
        fields.filter((_part, at) => fields[at - (at % 2)] !== "date");
      assert.deepEqual({ ...read, fields: dateless(read.fields) }, { ...bare, fields: dateless(bare.fields) });
      assert.equal(read.seen?.body, Buffer.from(BODY).toString("latin1"));
    });

    test("changed fields leave the others as they were, and the body untouched", async () => {
      const { seen, fields, body, status } = await send(
        [
          `function onRequest(request) { request.headers["x-one"] = ["3", "4"]; request.headers["X-New"] = "ü"; request.method = "PUT"; request.path = "/new path" }
           function onResponse(request, response) { response.statusCode = 201; delete response.headers["x-old"]; response.headers.append("Set-Cookie", "c=3") }`,
        ],
        { method: "POST", fields: FIELDS, body: Buffer.from(BODY) },
        {
          fields: [
            ["x-old", "1"],
            ["set-cookie", "a=1"],
          ],
          body: BODY,
        },
      );
      assert.deepEqual(
        calls.map(({ error }) => error),
        [null, null],
      );
      assert.deepEqual(
        [seen?.method, seen?.path, seen?.body],
        ["PUT", "/new%20path", Buffer.from(BODY).toString("latin1")],
      );
      assert.deepEqual(valuesOf(seen?.fields ?? [], "x-one"), ["3", "4"]);
      assert.deepEqual(valuesOf(seen?.fields ?? [], "x-two"), ["gr\xfcn"]);
      assert.deepEqual(valuesOf(seen?.fields ?? [], "x-new"), ["\xc3\xbc"]);
      assert.deepEqual([status, valuesOf(fields, "x-old"), valuesOf(fields, "set-cookie")], [201, [], ["a=1", "c=3"]]);
      assert.equal(body, Buffer.from(BODY).toString("latin1"));
    });

    test("changed bodies keep their content coding and get the right length", async () => {
      const zipped = gzipSync('{"a":1}');
      const { seen, fields, body } = await send(
        [
          `function onRequest(request) { const value = request.json(); value.b = "ü"; request.setJson(value) }
           function onResponse(request, response) { const value = response.json(); value.c = [3]; response.setJson(value) }`,
        ],
        {
          method: "POST",
          fields: [
            ["content-type", "application/json"],
            ["content-encoding", "gzip"],
          ],
          body: zipped,
        },
        {
          fields: [
            ["content-type", "application/json"],
            ["content-encoding", "gzip"],
            ["content-length", String(zipped.length)],
          ],
          body: zipped,
        },
      );
      assert.deepEqual(
        calls.map(({ error }) => error),
        [null, null],
      );
      assert.deepEqual(valuesOf(seen?.fields ?? [], "content-encoding"), ["gzip"]);
      assert.equal(gunzipSync(Buffer.from(seen?.body ?? "", "latin1")).toString(), '{"a":1,"b":"ü"}');
      assert.deepEqual(valuesOf(fields, "content-encoding"), ["gzip"]);
      assert.equal(gunzipSync(Buffer.from(body, "latin1")).toString(), '{"a":1,"c":[3]}');
      for (const length of valuesOf(fields, "content-length")) assert.equal(Number(length), body.length);
    });

    test("fields that frame messages are not forged", async () => {
      const { seen, fields, body, status } = await send(
        [
          `function forge({ headers }) { headers["Content-Length"] = "3"; headers["transfer-encoding"] = "chunked"; headers.append("Content-Length", "9") }
           function onRequest(request) { forge(request) }
           function onResponse(request, response) { forge(response); delete response.headers["content-length"] }`,
        ],
        { method: "POST", body: "12345" },
        { body: "123456789", fields: [["content-length", "9"]] },
      );
      assert.deepEqual([status, seen?.body, body], [200, "12345", "123456789"]);
      assert.ok(valuesOf(seen?.fields ?? [], "content-length").every((value) => value === "5"));
      assert.ok(valuesOf(fields, "content-length").every((value) => value === "9"));
      assert.deepEqual(valuesOf(fields, "transfer-encoding"), []);
      assert.equal((await send([], { path: "/next" })).body, "body");
    });

    test("a script's own response is whole, for HEAD and 204, too, whatever it says about its length", async () => {
      const own = (
        status: number,
      ): string => `function onRequest() { return { continue: false, response: { statusCode: ${String(status)},
        headers: { "X-Own": "ü", "Content-Length": "1000", "Transfer-Encoding": "chunked" }, body: "own body" } } }`;
      const get = await send([own(418)]);
      assert.deepEqual([get.status, get.body, valuesOf(get.fields, "x-own")], [418, "own body", ["\xc3\xbc"]]);
      assert.deepEqual(valuesOf(get.fields, "content-length"), ["8"]);
      const head = await send([own(200)], { method: "HEAD" });
      assert.deepEqual([head.status, head.body], [200, ""]);
      const empty = await send([own(204)]);
      assert.deepEqual([empty.status, empty.body], [204, ""]);
      const post = await send([own(200)], { method: "POST", body: "12345" });
      assert.deepEqual([post.status, post.body, post.seen], [200, "own body", undefined]);
      const late = await send([own(502).replace("onRequest()", "onResponse()")]);
      assert.deepEqual([late.status, late.body, valuesOf(late.fields, "content-length")], [502, "own body", ["8"]]);
      assert.equal((await send([], { path: "/next" })).body, "body");
    });

    test("line breaks are injected neither by way of fields nor method, URL or reason", async () => {
      for (const code of [
        `request.headers["X"] = "1\\r\\nInjected: 1"`,
        `request.headers["X\\r\\nInjected"] = "1"`,
        `request.method = "GET / HTTP/1.1\\r\\nInjected: 1"`,
        `request.headers = { get entries() { return () => [["X: 1\\r\\nInjected", "1"]] } }`,
        `Object.prototype.toJSON = () => ({ request: { fields: ["X", "1\\r\\nInjected: 1"] } }); request.headers["X"] = "1"`,
        `Object.prototype.toJSON = () => ({ request: { fields: ["X", "1\\u010d\\u010aInjected: 1"] } }); request.headers["X"] = "1"`,
        `Object.prototype.toJSON = () => ({ request: { method: "GET\\u010d\\u010aInjected:1" } }); request.method = "X"`,
      ]) {
        const { seen, status } = await send([`function onRequest(request) { ${code} }`], { path: "/safe" });
        assert.notEqual(calls[0]?.error, null, code);
        assert.deepEqual([status, seen?.method, seen?.path], [200, "GET", "/safe"], code);
        assert.deepEqual(valuesOf(seen?.fields ?? [], "injected"), []);
      }
      for (const code of [
        `request.path = "/x HTTP/1.1\\r\\nInjected: 1"`,
        `request.url = request.url + "\\r\\nInjected: 1"`,
      ]) {
        const { seen, status } = await send([`function onRequest(request) { ${code} }`], { path: "/safe" });
        assert.equal(status, 200);
        assert.doesNotMatch(seen?.path ?? "", /\s/);
        assert.deepEqual(valuesOf(seen?.fields ?? [], "injected"), []);
      }
      const { fields } = await send([
        `function onResponse(request, response) { response.statusMessage = "OK\\r\\nInjected: 1" }`,
      ]);
      assert.match(calls[0]?.error ?? "", /^TypeError: statusMessage/);
      assert.deepEqual(valuesOf(fields, "injected"), []);
    });

    test("scripts run in order, each on what the one before left, until one stops the chain", async () => {
      const add = (name: string): string =>
        `function onRequest(request, context) { request.headers.append("x-by", "${name}"); (context.data.by ??= []).push("${name}") }
         function onResponse(request, response, context) { response.headers["x-data"] = context.data.by.join() }`;
      const failing = `function onRequest(request) { request.headers["x-lost"] = "1"; throw new Error("no") }`;
      const all = await send([add("a"), { source: failing, onError: "continue" }, add("b")]);
      assert.deepEqual(valuesOf(all.seen?.fields ?? [], "x-by"), ["a", "b"]);
      assert.deepEqual(valuesOf(all.seen?.fields ?? [], "x-lost"), []);
      assert.deepEqual(valuesOf(all.fields, "x-data"), ["a,b"]);
      const stopped = await send([add("a"), { source: failing, onError: "stop_chain" }, add("b")]);
      assert.deepEqual(valuesOf(stopped.seen?.fields ?? [], "x-by"), ["a"]);
      assert.deepEqual([stopped.status, stopped.body], [200, "body"]);
      assert.match(calls[1]?.error ?? "", /^Error: no \(line 1, column \d+\)$/);
    });

    test("an exchange that a script cuts off ends, and the client goes on with others", async () => {
      const cut = await send([`function onRequest() { return false }`]);
      assert.equal(cut.status, 403);
      assert.equal(cut.seen, undefined);
      assert.equal((await send([`async function onRequest() { await 0; return { delay: 20 } }`])).body, "body");
    });
  });
}
