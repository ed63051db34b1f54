import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Readable } from "node:stream";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import {
  rawClient,
  readResponse,
  runProcess,
  spawnProcess,
  startOrigin,
  temporaryDirectory,
  waitUntil,
  type SpawnedProcess,
} from "@headworks/testkit";
import { serve as runServe } from "#cli/serve.ts";
import { RejectedDocumentError } from "#gateway.ts";
import { serving, startGateway } from "../gateway-rig.ts";
import { proxied } from "../route-documents.ts";
import { ok, startReceiver } from "../webhooks/receiver.ts";

const MAIN = fileURLToPath(new URL("../../bin/sluice.js", import.meta.url));

/** Every secret of the document has this in it, so that one search finds any of them anywhere. */
const MARK = "s3cr3tmark";
const FORMS = [
  MARK,
  Buffer.from(MARK).toString("base64").slice(0, 11),
  encodeURIComponent(MARK),
  Buffer.from(MARK).toString("hex"),
];

function assertClean(text: string, where: string): void {
  for (const form of FORMS) {
    const at = text.toLowerCase().indexOf(form.toLowerCase());
    assert.equal(at, -1, `${where}: ${text.slice(Math.max(0, at - 80), at + 40)}`);
  }
}

/** The address of a target is no secret by the specification; logs, metrics and envelopes leave its query out all the same. */
function withoutAddresses(text: string): string {
  return text.replaceAll(/(http:\/\/127\.0\.0\.1:\d+\/\w+)\?token=[\w-]+/g, "$1");
}

test("U12: no secret of the document or of a request is in any echo, issue, log line, metric, event or file of the store", async () => {
  await using origin = await startOrigin();
  await using hook = await startReceiver(ok);
  await using state = await temporaryDirectory();
  await writeFile(state.file("file-secret"), `file-${MARK}`);
  const document = {
    listeners: [{ name: "public", address: "127.0.0.1", port: 0, metrics: true }],
    admin: { bind: "127.0.0.1:0", audit_log: { path: state.file("audit.log") } },
    ...serving("api", [origin.port]),
    consumers: [
      {
        name: "acme",
        credentials: [
          { type: "api_key" as const, key: `inline-${MARK}` },
          { type: "api_key" as const, key: "${ENV_KEY}" },
          { type: "basic" as const, username: "u", password: `password-${MARK}` },
          { type: "hmac" as const, key_id: "k", secret: `hmac-secret-that-is-long-${MARK}` },
        ],
        quotas: { daily_requests: 100n },
      },
    ],
    webhooks: [
      {
        url: `${hook.url}?token=url-${MARK}`,
        events: ["config_published", "config_rejected", "breaker_opened"],
        headers: {
          "X-Inline": `inline-${MARK}`,
          "X-Env": "${ENV_KEY}",
          "X-File": `\${file:${state.file("file-secret")}}`,
        },
        backoff_base_ms: 1,
        backoff_cap_ms: 1,
      },
      {
        url: `http://127.0.0.1:1/dead?token=${MARK}`,
        events: ["config_published"],
        headers: { Authorization: `Bearer ${MARK}` },
      },
    ],
    routes: [proxied("api")],
  };
  const environment = {
    GATEWAY_ADMIN_DEV: "1",
    GATEWAY_STATE_DB: state.file("db", "state.db"),
    ENV_KEY: `env-${MARK}`,
  };
  const seen: [where: string, text: string][] = [];
  {
    await using gateway = await startGateway(document, { environment });
    for (const fields of [
      [`X-API-Key: inline-${MARK}`],
      [`X-API-Key: env-${MARK}`],
      [`X-API-Key: wrong-${MARK}`],
      [`Authorization: Basic ${Buffer.from(`u:password-${MARK}`).toString("base64")}`],
      [`Authorization: Basic ${Buffer.from(`u:wrong-${MARK}`).toString("base64")}`],
      [`Authorization: Bearer ${MARK}`],
      [`Cookie: session=${MARK}`, `X-API-Key : ${MARK}`],
      [
        `X-Gateway-Key-Id: k`,
        `X-Gateway-Signature: ${MARK}`,
        "X-Gateway-Nonce: 1",
        "X-Gateway-Timestamp: 1",
        `X-Gateway-Body-Sha256: ${MARK}`,
      ],
    ]) {
      const response = await gateway.send({ path: `/x?api_key=${MARK}`, fields });
      // The echo of the upstream has the query; answers of the gateway must not.
      if (response.status < 400) continue;
      seen.push([`answer to ${fields[0]?.slice(0, 20)}`, response.body.toString() + response.headers.flat().join()]);
    }
    const admin = gateway.gateway.adminUrl ?? "";
    for (const path of [
      "/config",
      "/config/generations",
      "/config/generations/1",
      "/consumers",
      "/consumers/acme",
      "/webhooks",
      "/upstreams",
      "/events",
      "/usage",
      "/quotas/usage",
      "/health",
      "/metrics",
      "/openapi.json",
    ]) {
      for (const accept of ["application/json", "application/yaml"]) {
        const response = await fetch(`${admin}${path}`, {
          headers: { accept },
          signal: AbortSignal.timeout(2000),
        }).catch(() => undefined);
        if (response === undefined) continue;
        const isStream = response.headers.get("content-type")?.includes("event-stream") === true;
        const text = isStream ? "" : await response.text();
        // The echo must be good for sending back.
        seen.push([`GET ${path}`, path.startsWith("/config") ? withoutAddresses(text) : text]);
        if (isStream) await response.body?.cancel();
      }
    }
    for (const [type, body] of [
      ["application/yaml", `consumers: [{name: acme, credentials: [{type: api_key, key: "\${NOT-${MARK}}"}]}]`],
      ["application/yaml", `consumers: [{name: acme, credentials: [{type: api_key, key: {x: ${MARK}}}]}]\nroutes: [`],
      ["application/yaml", `webhooks: [{url: "ftp://u:${MARK}@a/", events: [x], headers: {"X-A": "a\\n${MARK}"}}]`],
      [
        "application/json",
        `{"consumers": [{"name": "acme", "credentials": [{"type": "api_key", "key": ["${MARK}"]}]}]}`,
      ],
      [
        "application/merge-patch+json",
        `{"consumers": [{"name": "a", "credentials": [{"type": "basic", "username": "a:b", "password": "${MARK}"}]}]}`,
      ],
      ["application/json-patch+json", `[{"op": "test", "path": "/consumers/0/credentials/0/key", "value": "${MARK}"}]`],
    ] as const) {
      const response = await fetch(`${admin}/config`, { method: "PATCH", headers: { "content-type": type }, body });
      assert.ok(response.status >= 400, `${type}: ${response.status}`);
      seen.push([`PATCH ${type}`, await response.text()]);
      const planned = await fetch(`${admin}/config/plan`, { method: "POST", headers: { "content-type": type }, body });
      seen.push([`plan ${type}`, await planned.text()]);
    }
    await gateway.reload({ ...document, routes: [proxied("other")] });
    seen.push(["metrics", (await gateway.send({ path: "/metrics" })).body.toString()]);
    await waitUntil(() => gateway.log.filter(({ code }) => code === "webhook_delivery_failed").length >= 1);
    await waitUntil(() => hook.requests.length >= 2);
    seen.push(["log", JSON.stringify(gateway.log)]);
  }
  for (const { body, fields } of hook.requests) {
    seen.push(["envelope", body]);
    assert.ok(fields.includes(`file-${MARK}`) && fields.includes(`env-${MARK}`), "its target gets them all the same");
  }
  for (const directory of [state.file("db"), state.path]) {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      if (!entry.isFile() || entry.name === "file-secret") continue;
      const bytes = readFileSync(`${directory}/${entry.name}`).toString("latin1");
      // By its address the outbox knows to which target an event is to go.
      seen.push([entry.name, withoutAddresses(bytes)]);
    }
  }
  assert.ok(seen.length > 40);
  for (const [where, text] of seen) assertClean(text, where);
});

test("U12: the command line repeats no secret of a wrong document", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  for (const text of [
    `consumers: [{name: a, credentials: [{type: api_key, key: "\${${MARK}"}]}]`,
    `consumers: [{name: a, credentials: [{type: api_key, key: "\${NOT_${MARK.toUpperCase()}}"}, {type: basic, username: "x:y", password: ${MARK}}]}]`,
    `consumers: [{name: a, credentials: [{type: ${MARK}, key: ${MARK}}]}]`,
    `webhooks: [{url: "http://u:${MARK}@a/", events: [config_published], headers: {X-A: "${MARK}\\r\\n"}}]`,
    `consumers: [{name: a, credentials: [{type: api_key, key: ${MARK}}\n`,
    `{"consumers": [{"name": "a", "credentials": [{"type": "api_key", "key": ${MARK}`,
  ]) {
    await writeFile(file, text);
    for (const command of [
      ["validate", file],
      ["serve", "-c", file],
    ]) {
      const exit = await runProcess(process.execPath, [MAIN, ...command], { timeoutMs: 30_000 });
      // A variable's name may be said: it is how the operator finds it.
      const said = (exit.stdout + exit.stderr).replaceAll(`NOT_${MARK.toUpperCase()}`, "");
      assertClean(said, `${command[0]} of ${text}`);
    }
  }
});

test("U12: a document that is refused at the start names no secret in its issues", async () => {
  const error = await startGateway({
    consumers: ["a", "b"].map((name) => ({ name, credentials: [{ type: "api_key", key: `twice-${MARK}` }] })),
    routes: [],
  }).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof RejectedDocumentError, "one key of two consumers is refused");
  assertClean(JSON.stringify(error.issues), "issues");
});

// Stopping and reloading

const documentText = (originPort: number, at = 0): string => `
listeners: [{name: public, address: 127.0.0.1, port: 0, metrics: true}]
upstreams: [{name: u, endpoints: [{address: 127.0.0.1, port: ${originPort}}], timeouts: {connect_ms: ${5000 + at}}}]
services: [{name: s, upstream: u}]
routes:
  - {name: r, service: s, match: {path: {type: prefix, value: /}}, action: {type: proxy}}
`;

async function serve(
  file: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<[SpawnedProcess, number]> {
  const child = await spawnProcess(process.execPath, [MAIN, "serve", "-c", file, "--json"], {
    env: { GATEWAY_LOG: "warn", ...environment },
  });
  const [line] = await child.waitForOutput(/^\{.*"listeners".*\}$/m, 30_000);
  return [child, (JSON.parse(line) as { listeners: { port: number }[] }).listeners[0]?.port ?? 0];
}

test("U18: signals are listened to before anybody is told that the gateway runs", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  await writeFile(file, documentText(1));
  const steps: string[] = [];
  const code = await runServe(
    { config: file, json: true },
    {
      version: "0",
      environment: {},
      stdin: Readable.from([]),
      stdout: { write: () => undefined },
      stderr: { write: (text) => steps.push(text.includes("listeners") ? "said" : text) },
      createLogger: async () => await Promise.resolve(pino({ level: "silent" })),
      heldSignals: () => {
        steps.push("listening");
        return ["SIGTERM"];
      },
      exitNow: () => undefined,
    },
  );
  assert.deepEqual([code, steps], [0, ["listening", "said"]]);
});

test("U18: SIGTERM under load: every request that was taken is answered whole, also those with bodies, and the process ends well", async () => {
  await using origin = await startOrigin({
    handler: (request, response) => {
      request.resume();
      request.on("end", () => setTimeout(() => response.end("x".repeat(100_000)), 50 + Math.random() * 300));
    },
  });
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  await writeFile(file, documentText(origin.port));
  const [child, port] = await serve(file);
  await using _child = child;
  let isStopping = false;
  let whole = 0;
  const broken: string[] = [];
  const clients = Array.from({ length: 50 }, async (_, index) => {
    for (;;) {
      await using client = await rawClient(port).catch(() => undefined);
      if (client === undefined) return;
      for (;;) {
        const wasStopping = isStopping;
        const body = index % 2 === 0 ? "b".repeat(5000) : "";
        const method = index % 2 === 0 ? "POST" : "GET";
        try {
          await client.write(`${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
          const response = await readResponse(client);
          if (response.status !== 200 || response.body.length !== 100_000) broken.push(`${response.status}`);
          whole += 1;
          if (response.header("connection") === "close") return;
        } catch (error) {
          // A kept connection that the gateway closed before it took the request is no failure (RFC 9112, 9.3.1).
          if (!wasStopping && !isStopping) broken.push(String(error));
          else if (client.unreadBytes > 0) broken.push("cut");
          return;
        }
      }
    }
  });
  await waitUntil(() => whole > 100 && origin.requests.length - whole > 10, { what: "requests under way" });
  isStopping = true;
  process.kill(child.pid, "SIGTERM");
  await Promise.all(clients);
  const exit = await child.exited;
  assert.deepEqual([broken, exit.code], [[], 0]);
  assert.equal(whole, origin.requests.length, "what reached the upstream reached its client");
});

test("U18: reload storms fail no request, good and bad documents in turn, by file and by signal", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => void setTimeout(() => response.end("ok"), Math.random() * 20),
  });
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  await writeFile(file, documentText(origin.port));
  const [child, port] = await serve(file);
  await using _child = child;
  let isFinished = false;
  let whole = 0;
  const broken: string[] = [];
  const clients = Array.from({ length: 20 }, async () => {
    await using client = await rawClient(port);
    while (!isFinished) {
      await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      const response = await readResponse(client);
      if (response.status !== 200) broken.push(response.body.toString());
      whole += 1;
    }
  });
  for (let at = 1; at <= 100; at += 1) {
    await writeFile(file, at % 3 === 0 ? "routes: 7" : documentText(origin.port, at));
    if (at % 2 === 0) process.kill(child.pid, "SIGHUP");
    await sleep(10);
  }
  isFinished = true;
  await Promise.all(clients);
  assert.deepEqual(broken, []);
  assert.ok(whole > 200);
  const generation = /^config_generation (\d+)$/m.exec(
    await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
  )?.[1];
  assert.ok(Number(generation) > 10, `generation ${generation}`);
});

test("U18: a second process on the same store is refused, or both count together", async () => {
  await using origin = await startOrigin();
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  const text = `${documentText(origin.port)}
consumers: [{name: c, credentials: [{type: api_key, key: kkk}], quotas: {daily_requests: 10}}]
`;
  await writeFile(file, text);
  const environment = { GATEWAY_STATE_DB: directory.file("db", "state.db") };
  const [first, port] = await serve(file, environment);
  await using _first = first;
  const second = await serve(file, environment).catch((error: unknown) => String(error));
  const ports = [port];
  if (typeof second !== "string") ports.push(second[1]);
  try {
    const statuses: number[] = [];
    for (let at = 0; at < 24; at += 1) {
      const response = await fetch(`http://127.0.0.1:${ports[at % ports.length]}/`, {
        headers: { "x-api-key": "kkk" },
      });
      statuses.push(response.status);
      await response.arrayBuffer();
    }
    assert.ok(statuses.filter((status) => status === 200).length <= 10, statuses.join());
    assert.equal(statuses[0], 200);
  } finally {
    if (typeof second !== "string") await second[0].stop();
  }
});
