import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { spawnProcess, startRawServer, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { ADMIN, DEV, listeners } from "./admin-rig.ts";
import { sluice } from "./cli-rig.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

const MAIN = fileURLToPath(new URL("../bin/sluice.js", import.meta.url));

const document = (body: string) => ({
  ...serving("api", [1, 2], { breaker: {} }),
  listeners,
  admin: ADMIN,
  routes: [
    {
      name: "fixed",
      match: { path: { type: "exact" as const, value: "/" } },
      action: { type: "respond" as const, status: 200, body },
    },
    {
      name: "rest",
      service: "api",
      match: { path: { type: "prefix" as const, value: "/api" } },
      action: { type: "proxy" as const },
    },
  ],
});

const of = (gateway: TestGateway) => ({ GATEWAY_ADMIN: gateway.gateway.adminUrl ?? "" });
const body = async (gateway: TestGateway): Promise<string> => (await gateway.send({ path: "/" })).body.toString();

test("status says version, generation and every endpoint; colours only where a person looks and wants them", async () => {
  await using gateway = await startGateway(document("one"), DEV);
  const plain = await sluice(["status"], of(gateway));
  assert.deepEqual([plain.code, plain.err], [0, ""]);
  assert.match(plain.out, /^Sluice \d+\.\d+\.\d+ at http:\/\/127\.0\.0\.1:\d+, up \d+ s\ngeneration 1, 0 requests/);
  assert.match(plain.out, /\napi +closed +127\.0\.0\.1:1 +healthy +0 +0\napi +closed +127\.0\.0\.1:2 /);
  const painted = await sluice(["status"], of(gateway), { isTTY: true });
  assert.ok(painted.out.includes("\u001b["));
  const refused = await sluice(["status"], { ...of(gateway), NO_COLOR: "1" }, { isTTY: true });
  assert.equal(refused.out, plain.out.replace(/up \d+ s/, /up \d+ s/.exec(refused.out)?.[0] ?? ""));
  const { upstreams } = JSON.parse((await sluice(["status", "--json"], of(gateway))).out) as { upstreams: object[] };
  assert.equal(upstreams.length, 1);
});

test("config: get, apply with a plan and a condition, history and rollback", async () => {
  await using gateway = await startGateway(document("one"), DEV);
  const next = gateway.directory.file("next.json");
  await writeFile(next, JSON.stringify(document("two")));
  assert.match((await sluice(["config", "get"], of(gateway))).out, /body: one/);
  const planned = await sluice(["config", "apply", next, "--dry-run"], of(gateway));
  assert.deepEqual(planned, { code: 0, out: "~ route fixed\nwould be published as generation 2, 2 routes\n", err: "" });
  assert.equal(await body(gateway), "one");
  const stale = await sluice(["config", "apply", next, "--if-match", "0x1"], of(gateway));
  assert.deepEqual([stale.code, stale.err.endsWith("[config_conflict]\n")], [1, true]);
  const applied = await sluice(["config", "apply", next], of(gateway));
  assert.deepEqual(applied, { code: 0, out: "~ route fixed\npublished as generation 2, 2 routes\n", err: "" });
  assert.equal(await body(gateway), "two");
  assert.match(await readFile(gateway.configFile, "utf8"), /"two"/);
  const history = await sluice(["config", "history"], of(gateway));
  assert.match(history.out, /^generation .*\n2 \(running\) +\S+Z +2 +admin +loopback\n1 +\S+Z +2 +startup\n$/);
  assert.match((await sluice(["config", "get", "--generation", "1"], of(gateway))).out, /body: one/);
  const asJson = await sluice(["config", "get", "--generation", "1", "--json"], of(gateway));
  assert.match(JSON.stringify(JSON.parse(asJson.out)), /"body":"one"/);
  assert.equal((await sluice(["config", "rollback", "1"], of(gateway))).code, 0);
  assert.equal(await body(gateway), "one");
  assert.equal((await sluice(["config", "rollback", "x"], of(gateway))).code, 2);
  const gone = await sluice(["config", "rollback", "99"], of(gateway));
  assert.deepEqual([gone.code, gone.err], [1, "sluice: This generation is not retained [generation_not_found]\n"]);
});

test("config apply and rollback publish over what was saved in the gateway's file and does not run with --overwrite alone", async () => {
  await using gateway = await startGateway(document("one"), DEV);
  const next = gateway.directory.file("next.json");
  await writeFile(next, JSON.stringify(document("two")));
  await writeFile(gateway.configFile, "typo: 1\n");
  const refused = await sluice(["config", "apply", next], of(gateway));
  assert.deepEqual([refused.code, refused.err.endsWith("[config_file_differs]\n")], [1, true]);
  assert.equal((await sluice(["config", "apply", next, "--overwrite"], of(gateway))).code, 0);
  assert.equal(await body(gateway), "two");
  await writeFile(gateway.configFile, "typo: 1\n");
  assert.match((await sluice(["config", "rollback", "1"], of(gateway))).err, /\[config_file_differs\]\n$/);
  assert.equal((await sluice(["config", "rollback", "1", "--overwrite"], of(gateway))).code, 0);
  assert.equal(await body(gateway), "one");
});

test("plan shows how much of the recent traffic is affected, if the given gateway can be reached", async () => {
  await using gateway = await startGateway(document("one"), DEV);
  const next = gateway.directory.file("next.json");
  await writeFile(next, JSON.stringify(document("two")));
  const files = [gateway.configFile, next];
  const offline = "~ route fixed (/action/body)\naffected routes: fixed\n";
  assert.deepEqual(await sluice(["plan", ...files], DEV.environment), { code: 0, out: offline, err: "" });
  for (const path of ["/", "/", "/api/x", "/none"]) await gateway.send({ path });
  const asked = await sluice(["plan", ...files], { ...DEV.environment, ...of(gateway) });
  assert.match(asked.out, /^(?:.*\n){2}3 requests in \d+ s: fixed 66\.7 %\n$/);
  assert.ok(asked.out.startsWith(offline));
  const admin = ["--admin", gateway.gateway.adminUrl ?? ""];
  const { out } = await sluice(["plan", ...files, ...admin, "--json"], DEV.environment);
  const { traffic } = JSON.parse(out) as { traffic: { requests: number; routes: { name: string }[] } };
  assert.deepEqual([traffic.requests, traffic.routes.map(({ name }) => name)], [3, ["fixed", "rest"]]);
  const dry = await sluice(["config", "apply", next, "--dry-run"], of(gateway));
  assert.match(dry.out, /^~ route fixed\n3 requests in \d+ s: fixed 66\.7 %\nwould be published as generation 2/);
  const gone = await sluice(["plan", ...files, "--admin", "http://127.0.0.1:1"], DEV.environment);
  assert.deepEqual([gone.code, gone.out], [0, offline]);
  assert.match(gone.err, /^sluice: The traffic of routes is not shown: Nothing listens at/);
});

test("config apply says every error of a document with its place, and changes nothing", async () => {
  await using gateway = await startGateway(document("one"), DEV);
  const bad = gateway.directory.file("bad.yaml");
  await writeFile(bad, "routes:\n  - {name: a}\nnope: 1\n");
  const { code, out, err } = await sluice(["config", "apply", bad], of(gateway));
  assert.deepEqual([code, out], [1, ""]);
  assert.match(
    err,
    /^sluice: The configuration has \d+ errors: .*\n {2}2:\d+: .*\n.*\n?.* {2}3:1: "nope" .*\[unknown_field\]/,
  );
  const none = await sluice(["config", "apply", "/no/such.yaml"], of(gateway));
  assert.deepEqual([none.code, none.err], [1, "sluice: the file /no/such.yaml does not exist\n"]);
  assert.equal(await body(gateway), "one");
});

test("quota prints every digit of a budget, adjusts it, and knows consumers without one", async () => {
  await using directory = await temporaryDirectory();
  await using gateway = await startGateway(
    JSON.stringify({
      ...document("one"),
      consumers: [
        { name: "acme", credentials: [{ type: "api_key", key: "k" }], quotas: { monthly_requests: "MOST" } },
        { name: "free", credentials: [{ type: "api_key", key: "f" }] },
      ],
    }).replace('"MOST"', "18446744073709551615"),
    { environment: { GATEWAY_ADMIN_DEV: "1", GATEWAY_STATE_DB: directory.file("state.db") } },
  );
  await waitUntil(async () => !(await sluice(["quota"], of(gateway))).out.includes("not counted yet"), {
    what: "its row",
  });
  const all = await sluice(["quota"], of(gateway));
  assert.match(all.out, /\nacme +monthly +0 +18446744073709551615 +18446744073709551615 +\d{4}-\d\d-01T00:00Z\n$/);
  const less = await sluice(["quota", "adjust", "acme", "monthly", "5", "--reason", "test"], of(gateway));
  assert.match(less.out, /acme +monthly +5 +18446744073709551615 +18446744073709551610 /);
  const more = await sluice(["quota", "adjust", "--reason", "x", "acme", "monthly", "-2"], of(gateway));
  assert.match(more.out, /acme +monthly +3 /, more.err);
  assert.match((await sluice(["quota", "acme", "--json"], of(gateway))).out, /"remaining":18446744073709551612/);
  assert.match((await sluice(["quota", "free"], of(gateway))).err, /\[quota_bad_consumer\]\n$/);
  assert.equal((await sluice(["quota", "adjust", "acme", "monthly", "1.5", "--reason", "x"], of(gateway))).code, 2);
  assert.equal((await sluice(["quota", "adjust", "acme", "weekly", "1", "--reason", "x"], of(gateway))).code, 2);
});

test("events prints the latest, oldest first, and follows what happens until the gateway ends the stream", async () => {
  const gateway = await startGateway(document("one"), DEV);
  try {
    const past = await sluice(["events"], of(gateway));
    assert.match(past.out, /^\S+Z {2}config_published +generation=1 content_hash=\d+ route_count=2\n$/);
    await using child = await spawnProcess(process.execPath, [MAIN, "events", "--follow", "--json"], {
      env: { ...process.env, ...of(gateway) },
    });
    await child.waitForOutput(/"generation":1/, 30_000);
    await gateway.reload(document("two"));
    await child.waitForOutput(/"kind":"config_published".*"generation":2/);
    await gateway.gateway.stop(1000);
    const exit = await child.exited;
    assert.deepEqual([exit.code, exit.stderr.endsWith("sluice: The gateway ended the stream\n")], [1, true]);
  } finally {
    await gateway[Symbol.asyncDispose]();
  }
  assert.equal((await sluice(["events", "--limit", "0"])).code, 2);
});

test("an unreachable gateway is reported with exit code 1, an invalid command with 2", async () => {
  const nobody = await sluice(["status", "--admin", "http://127.0.0.1:1"]);
  assert.deepEqual([nobody.code, nobody.err.startsWith("sluice: Nothing listens at http://127.0.0.1:1.")], [1, true]);
  assert.match((await sluice(["status", "--admin", "ftp://x"])).err, /is not an http:\/\/ or https:\/\/ URL/);
  assert.match((await sluice(["status", "--cert", "/none.pem"])).err, /The file \/none\.pem cannot be read \(ENOENT\)/);
  await using other = await startRawServer(async (connection) => {
    await connection.write("HTTP/1.1 502 Bad\r\nConnection: close\r\nContent-Length: 4\r\n\r\n\u001b[2J");
  });
  const odd = await sluice(["status", "--admin", `http://127.0.0.1:${other.port}`]);
  assert.deepEqual(
    [odd.code, odd.err],
    [1, "sluice: The response has status 502, and is not from a Sluice admin API\n"],
  );
  for (const args of [["nonsense"], ["config"], ["config", "apply"], ["quota", "a", "b"], ["status", "--nope"], []]) {
    assert.equal((await sluice(args)).code, 2, args.join(" "));
  }
});

test("the version, and help with examples for every command", async () => {
  assert.deepEqual(await sluice(["-v"]), { code: 0, out: "9.9.9\n", err: "" });
  for (const flag of ["--version", "-V"]) assert.equal((await sluice([flag])).out, "9.9.9\n");
  for (const command of [
    [],
    ["serve"],
    ["validate"],
    ["lint"],
    ["fmt"],
    ["schema"],
    ["diff"],
    ["plan"],
    ["explain"],
    ["status"],
    ["quota"],
    ["quota", "adjust"],
    ["config"],
    ["config", "get"],
    ["config", "apply"],
    ["config", "rollback"],
    ["config", "history"],
    ["events"],
    ["certs"],
  ]) {
    const { code, out } = await sluice([...command, "--help"]);
    assert.equal(code, 0);
    assert.match(out, /\nExamples:\n {2}\S*.*sluice/, command.join(" "));
  }
});

for (const args of [
  ["nope"],
  ["help", "nope"],
  ["nope", "--help"],
  ["nope", "-h"],
  ["config", "nope", "--help"],
  ["help", "config", "nope"],
  ["config", "help", "nope"],
]) {
  test(`help for a command that is not there is the error of an unknown command: sluice ${args.join(" ")}`, async () => {
    const err = "sluice: unknown command 'nope'\nSee sluice --help.\n";
    assert.deepEqual(await sluice(args), { code: 2, out: "", err });
  });
}

for (const [args, usage] of [
  [["help"], "sluice [options] [command]"],
  [["help", "status"], "sluice status [options]"],
  [["help", "config", "apply"], "sluice config apply [options] <file>"],
  [["config", "help", "apply"], "sluice config apply [options] <file>"],
  [["help", "serve", "gateway.yaml"], "sluice serve [options]"],
  [["help", "quota", "acme"], "sluice quota [options] [command] [consumer]"],
] as const) {
  test(`help explains the command that is named, below others too: sluice ${args.join(" ")}`, async () => {
    const { code, out, err } = await sluice(args);
    assert.deepEqual([code, out.split("\n")[0], err], [0, `Usage: ${usage}`, ""]);
  });
}

test("help is there before anything of the gateway is loaded", async () => {
  await using child = await spawnProcess(process.execPath, [
    "--import",
    "data:text/javascript,import { registerHooks } from 'node:module'; registerHooks({ load: (url, context, next) => { process.stderr.write(url + '\\n'); return next(url, context); } });",
    MAIN,
    "--help",
  ]);
  const { code, stderr } = await child.exited;
  assert.equal(code, 0);
  assert.doesNotMatch(stderr, /\/(?:gateway\.ts|slices\.ts|check-document\.ts|fastify|yaml|typebox|pino)\b/);
  assert.match(stderr, /\/cli\/program\.ts/);
});

test("commands that look at files run every check of the gateway", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  const route = (path: string) => `routes: [{name: r, match: {path: ${path}}, action: {type: respond, status: 200}}]\n`;
  await writeFile(file, route("{type: prefix, value: /a}"));
  assert.deepEqual(await sluice(["validate", file]), { code: 0, out: "ok: 1 routes\n", err: "" });
  assert.match((await sluice(["explain", "-c", file, "--path", "/a/b"])).out, /^GET \/a\/b\nrouted: /);
  await writeFile(file, route('{type: regex, value: "("}'));
  const bad = await sluice(["validate", file]);
  assert.deepEqual([bad.code, bad.err.endsWith("[regex_invalid]\n")], [1, true]);
});
