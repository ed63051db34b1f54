import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { NewScript, ScriptExecution, ScriptTestResult, TrafficEntry } from "@headworks/capture-contract";
import { waitUntil } from "@headworks/testkit";
import { type ProxyRig, startProxyRig } from "./proxy-rig.ts";
import { startWebSocketRig } from "./websocket-rig.ts";

let rig: ProxyRig;
before(async () => {
  rig = await startProxyRig();
});
after(() => rig[Symbol.asyncDispose]());

/** The example of the guide that declares a hook. */
function exampleWith(hook: string): string {
  const guide = readFileSync(new URL("../../../docs/guides/write-a-script.md", import.meta.url), "utf8");
  const blocks = [...guide.matchAll(/^```js\n([^]*?)^```$/gmu)].map(([, source = ""]) => source);
  const found = blocks.find((source) => source.includes(`function ${hook}(`));
  assert.ok(found !== undefined, hook);
  return found;
}

async function withScript<T>(
  { api }: Pick<ProxyRig, "api">,
  script: string | (Partial<NewScript> & { readonly source: string }),
  run: (id: string) => Promise<T>,
): Promise<T> {
  const given = typeof script === "string" ? { source: script } : script;
  const { id } = await api<{ id: string }>("POST", "/scripts", { name: "script", ...given }, 201);
  try {
    return await run(id);
  } finally {
    await api("DELETE", `/scripts/${id}`, undefined, 204);
  }
}

async function newest({ api }: Pick<ProxyRig, "api">, path: string): Promise<TrafficEntry> {
  let found: TrafficEntry | undefined;
  await waitUntil(async () => {
    const entries = await api<TrafficEntry[]>("GET", "/traffic?include_bodies=true");
    found = entries.find(({ request, state }) => request.path.startsWith(path) && state !== "pending");
    return found !== undefined;
  });
  return found as TrafficEntry;
}

async function history({ api }: Pick<ProxyRig, "api">, id: string): Promise<ScriptExecution[]> {
  return await api<ScriptExecution[]>("GET", `/scripts/${id}/history`);
}

test("the first example of the guide changes requests and responses, responds itself and prints", async () => {
  rig.respond = (_seen, response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end('{"items":[]}');
  await withScript(rig, exampleWith("onResponse"), async (id) => {
    rig.seen.length = 0;
    const changed = await rig.send({ path: "/items" });
    assert.deepEqual(JSON.parse(changed.body.toString()), { items: [], seenBy: "weir" });
    assert.equal(rig.seen[0]?.headers["x-request-number"], "1");
    const own = await rig.send({ path: "/health" });
    assert.deepEqual([own.status, own.body.toString()], [200, '{"status":"ok","seenBy":"weir"}']);
    assert.equal(rig.seen.length, 1);
    const [last, , , first] = await history(rig, id);
    assert.deepEqual([last?.hook, first?.hook], ["on_response", "on_request"]);
    assert.match(last?.console[0] ?? "", /^GET http:\/\/127\.0\.0\.1:\d+\/health 200 \d+ ms$/);
    assert.deepEqual(first?.changes, ["set header X-Request-Number: 1"]);
    const entry = await newest(rig, "/items");
    assert.deepEqual([entry.script_intercepted, entry.modified], [true, true]);
    assert.deepEqual(
      entry.trace.map(({ kind, rule_name: name, phase }) => [kind, name, phase]),
      [
        ["script", "script", "request"],
        ["script", "script", "response"],
      ],
    );
    const traces = await rig.api<ScriptExecution[]>("GET", `/traffic/${entry.id}/script-traces`);
    assert.deepEqual(
      traces.map(({ hook, success }) => [hook, success]),
      [
        ["on_request", true],
        ["on_response", true],
      ],
    );
  });
});

test("the store example of the guide: entries are left out, redacted and tagged; the origin sees everything", async () => {
  rig.respond = (_seen, response) => void response.end("ok");
  await withScript(rig, exampleWith("onTrafficStore"), async () => {
    rig.seen.length = 0;
    await rig.send({ path: "/telemetry/1" });
    await rig.send({ path: "/account", headers: { Authorization: "Bearer secret" } });
    const entry = await newest(rig, "/account");
    assert.equal(rig.seen[1]?.headers["authorization"], "Bearer secret");
    assert.equal(entry.request.headers_list.find(([name]) => name?.toLowerCase() === "authorization")?.[1], "removed");
    assert.equal(entry.notes, "#reviewed");
    const entries = await rig.api<TrafficEntry[]>("GET", "/traffic");
    assert.equal(
      entries.some(({ request }) => request.path.startsWith("/telemetry")),
      false,
    );
  });
});

test("on_traffic_store changes stored bodies and URLs; nothing of them is shown before", async () => {
  rig.respond = (_seen, response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end('{"card":"4111"}');
  const source = `function onTrafficStore({ entry }) {
    entry.request.url = entry.request.url.replace(/token=[^&]*/, "token=-");
    entry.request.body = "";
    const data = entry.response.json();
    data.card = "-";
    entry.response.setJson(data);
  }`;
  await withScript(rig, source, async () => {
    const response = await rig.send({ method: "POST", path: "/pay?token=secret", body: "card=4111" });
    assert.equal(response.body.toString(), '{"card":"4111"}');
    const entry = await newest(rig, "/pay");
    assert.match(entry.request.url, /\/pay\?token=-$/);
    assert.deepEqual([entry.request.body, entry.response?.body], [null, '{"card":"-"}']);
    const found = await rig.api<{ count: number }>("GET", "/traffic/count?q=body:4111");
    assert.equal(found.count, 0);
  });
});

test("a failed on_traffic_store stores the entry as it is, and says why", async () => {
  rig.respond = (_seen, response) => void response.end("ok");
  await withScript(rig, "function onTrafficStore() { throw new Error('oops'); }", async (id) => {
    await rig.send({ path: "/failed-store" });
    const entry = await newest(rig, "/failed-store");
    assert.equal(entry.state, "complete");
    const [execution] = await history(rig, id);
    assert.match(execution?.error ?? "", /^Error: oops \(line 1, column \d+\)$/);
  });
});

test("on_session_end and on_session_start are called when another session becomes the active one", async () => {
  const source = `function onSessionStart({ session }) { console.log("start", session.name); }
    function onSessionEnd({ session }) { console.log("end", session.id); }`;
  await withScript(rig, source, async (id) => {
    const [before] = await rig.api<{ id: string }[]>("GET", "/sessions");
    const session = await rig.api<{ id: string }>("POST", "/sessions", { name: "second" });
    await rig.api("POST", `/sessions/${session.id}/switch`);
    let calls: ScriptExecution[] = [];
    await waitUntil(async () => (calls = await history(rig, id)).length === 2);
    assert.deepEqual(calls.map(({ hook, console: lines }) => `${hook}: ${lines.join()}`).toSorted(), [
      `on_session_end: end ${before?.id ?? ""}`,
      "on_session_start: start second",
    ]);
  });
});

test("on_websocket_message changes and drops messages in both directions; frames keep what was sent", async () => {
  await using sockets = await startWebSocketRig();
  const source = `function onWebSocketMessage(context) {
    if (context.payload === "drop") return { continue: false };
    if (context.direction === "send") context.payload = context.payload + "!";
    else context.payload = context.payload.toUpperCase();
  }`;
  await withScript(sockets, source, async () => {
    const { client, server } = await sockets.open();
    client.socket.send("hello");
    client.socket.send("drop");
    client.socket.send("bye");
    await waitUntil(() => server.messages.length === 2);
    server.socket.send("answer");
    await waitUntil(() => client.messages.length === 1);
    assert.deepEqual([server.messages, client.messages], [["hello!", "bye!"], ["ANSWER"]]);
    client.socket.close();
  });
});

test("a script that never returns delays only its own exchanges, and those only for its timeout", async () => {
  rig.respond = (_seen, response) => void response.end("ok");
  const loop = { name: "loop", source: "function onRequest() { for (;;); }", match_filter: { path_pattern: "/loop*" } };
  const quick = { name: "quick", source: 'function onRequest(request) { request.headers["X-Quick"] = "1"; }' };
  await withScript(rig, { ...quick, priority: 200 }, async () => {
    // Its thread has started before time is short.
    await rig.send({ path: "/first" });
    await rig.api("PUT", "/scripts/config", { timeout_ms: 1500 });
    await withScript(rig, loop, async (loopId) => {
      rig.seen.length = 0;
      const looping = rig.send({ path: "/loop" });
      const others = await Promise.all(Array.from({ length: 20 }, () => rig.send({ path: "/other" })));
      assert.equal(
        others.every(({ status }) => status === 200),
        true,
      );
      const seenOthers = rig.seen.filter(({ url }) => url === "/other");
      assert.deepEqual(
        seenOthers.map(({ headers }) => headers["x-quick"]),
        Array.from({ length: 20 }, () => "1"),
      );
      assert.equal((await looping).status, 200);
      const [execution] = await history(rig, loopId);
      assert.equal(execution?.error, "The script took longer than 1500 ms");
    });
    await rig.api("PUT", "/scripts/config", { timeout_ms: 5000 });
  });
});

test("values of store survive a change of the source; feature scripting can be switched off", async () => {
  const first = await startProxyRig();
  await using _first = first;
  first.respond = (_seen, response) => void response.end("ok");
  const source = `function onRequest(request) {
    store.set("count", (store.get("count") ?? 0) + 1);
    request.headers["X-Count"] = String(store.get("count"));
  }`;
  await withScript(first, source, async (id) => {
    await first.send({ path: "/1" });
    await first.api("PUT", `/scripts/${id}`, { source: `${source}\n// changed` }, 204);
    await first.send({ path: "/2" });
    assert.deepEqual(
      first.seen.map(({ headers }) => headers["x-count"]),
      ["1", "2"],
    );
  });
  const off = await startProxyRig({ "disable-feature": "scripting" });
  await using _off = off;
  const { code } = await off.api<{ code: string }>("GET", "/scripts", undefined, 501);
  assert.equal(code, "NOT_IMPLEMENTED");
});

test("a dry run shows what each hook would do, and Set-Cookie fields apart", async () => {
  const dryRun = async (body: object): Promise<ScriptTestResult> => await rig.api("POST", "/scripts/test", body);
  const cookies = await dryRun({
    source: "function onResponse(request, response) { response.headers.append('Set-Cookie', 'b=2'); }",
    hook: "on_response",
    response: { headers: { "Set-Cookie": "a=1" } },
  });
  assert.deepEqual(
    [cookies.original_response?.headers, cookies.modified_response?.headers],
    [{ "Set-Cookie": "a=1" }, { "Set-Cookie": "a=1\nb=2" }],
  );
  const upper = await dryRun({
    source:
      "function onWebSocketMessage(context) { context.payload = context.payload.toUpperCase() + context.direction; }",
    hook: "on_websocket_message",
    message: { direction: "receive", payload: "hi" },
  });
  assert.equal(upper.modified_payload, "HIreceive");
  const call = await dryRun({
    source:
      "function onGrpcMessage(context) { console.log(context.service, context.method); return { continue: false }; }",
    hook: "on_grpc_message",
    message: { service: "shop.Orders", method: "List", payload: "base64:AAE=" },
  });
  assert.deepEqual(
    [call.console, call.changes, call.continue_],
    [["shop.Orders List"], ["dropped the message"], false],
  );
  const stored = await dryRun({
    source: "function onTrafficStore({ entry }) { entry.request.body = entry.response.body; entry.tags.push('seen'); }",
    hook: "on_traffic_store",
    request: { method: "POST", url: "https://a.example/", body: "secret" },
    response: { body: "x" },
  });
  assert.deepEqual(stored.changes, ["changed the request's body", "tags: seen"]);
  const started = await dryRun({
    source: "function onSessionStart({ session }) { console.log(session.name); }",
    hook: "on_session_start",
  });
  assert.deepEqual([started.console, started.error], [["Sample"], null]);
});
