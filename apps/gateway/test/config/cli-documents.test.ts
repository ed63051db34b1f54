import assert from "node:assert/strict";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { FakeClock, runProcess, temporaryDirectory, type TemporaryDirectory } from "@headworks/testkit";
import { Command } from "commander";
import { addDocumentCommands } from "#cli/document-commands.ts";
import type { DocumentCheck } from "#config/check-document.ts";
import { explainRoute } from "#routing/explain.ts";
import { allChecks } from "./all-checks.ts";

const good = `# The only route.
routes:
  - name: a      # of the shop
    match: {path: {type: prefix, value: /}}
    action: {type: respond, status: 200}
`;

interface Ran {
  readonly code: number | undefined;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line; paths are relative to the directory. */
async function run(
  directory: TemporaryDirectory,
  args: readonly string[],
  checks: readonly DocumentCheck[] = [],
): Promise<Ran> {
  let [out, err] = ["", ""];
  let code: number | undefined;
  const streams = {
    stdin: Readable.from([Buffer.from(good)]),
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (err += text) },
  };
  const program = new Command("sluice").exitOverride();
  const parts = { checks, clock: new FakeClock(), environment: { KEY: "s3cret" } };
  addDocumentCommands(program, {
    streams,
    parts: () => parts,
    explainRoute: () => explainRoute,
    ended: (exitCode) => (code = exitCode),
  });
  const words = args.map((word) => (/\.(?:yaml|json)$/.test(word) ? directory.file(word) : word));
  await program.parseAsync(words, { from: "user" });
  const short = (text: string): string => text.replaceAll(`${directory.path}/`, "");
  return { code, out: short(out), err: short(err) };
}

void test("validate says how many routes there are, or each error with its place, and has exit codes 0 and 1", async () => {
  await using directory = await temporaryDirectory();
  await writeFile(directory.file("good.yaml"), good);
  await writeFile(directory.file("bad.yaml"), "routes:\n  - name: a\n    mtach: {}\n    action: {type: proxy}\nx: 1\n");
  assert.deepEqual(await run(directory, ["validate", "good.yaml"]), { code: 0, out: "ok: 1 routes\n", err: "" });
  const bad = await run(directory, ["validate", "bad.yaml"]);
  assert.deepEqual(bad, {
    code: 1,
    out: "",
    err: [
      'bad.yaml:2:5: routes[0] needs "match" [required]',
      'bad.yaml:2:5: The route "a" proxies, so it needs a service [required]',
      'bad.yaml:3:5: "mtach" is not a field of routes[0]. Did you mean "match"? [unknown_field]',
      'bad.yaml:5:1: "x" is not a field of the document [unknown_field]',
      "",
    ].join("\n"),
  });
  assert.deepEqual(await run(directory, ["validate", "none.yaml"]), {
    code: 1,
    out: "",
    err: "sluice: the file none.yaml does not exist\n",
  });
});

void test("validate runs every part's checks, and --json tells all of it", async () => {
  await using directory = await temporaryDirectory();
  await writeFile(directory.file("good.yaml"), good);
  const check: DocumentCheck = (_, report) => report.error("regex_invalid", ["routes", 0, "match"], "no");
  const lines = await run(directory, ["validate", "good.yaml"], [check]);
  assert.deepEqual(lines, { code: 1, out: "", err: "good.yaml:4:5: no [regex_invalid]\n" });
  const { code, out } = await run(directory, ["validate", "good.yaml", "--json"], [check]);
  assert.equal(code, 1);
  assert.deepEqual(JSON.parse(out), {
    ok: false,
    routes: 1,
    content_hash: null,
    issues: [{ code: "regex_invalid", path: "/routes/0/match", line: 4, column: 5, message: "no", severity: "error" }],
  });
  const fine = JSON.parse((await run(directory, ["validate", "good.yaml", "--json"])).out) as { content_hash: string };
  assert.match(fine.content_hash, /^0x[0-9a-f]{14}$/);
});

void test("lint ends with 0 without warnings, 2 with some, 1 with errors", async () => {
  await using directory = await temporaryDirectory();
  await writeFile(directory.file("good.yaml"), good);
  await writeFile(directory.file("warn.yaml"), `${good}policies: [{name: p}, {name: q}]\n`);
  await writeFile(directory.file("bad.yaml"), `${good}policies: [{name: p}, {}]\n`);
  assert.deepEqual(await run(directory, ["lint", "good.yaml"]), { code: 0, out: "", err: "" });
  assert.deepEqual(await run(directory, ["lint", "warn.yaml"]), {
    code: 2,
    out: "",
    err: 'warning: warn.yaml:6:12: Nothing uses the policy "p" [unused]\nwarning: warn.yaml:6:23: Nothing uses the policy "q" [unused]\n2 warnings\n',
  });
  assert.deepEqual(await run(directory, ["lint", "bad.yaml"]), {
    code: 1,
    out: "",
    err: 'bad.yaml:6:23: policies[1] needs "name" [required]\n',
  });
});

void test("fmt writes evenly in place, silently, keeps comments and mode, and is done after one run", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("a.yaml");
  await writeFile(
    file,
    `# The only route.\nroutes:\n    -   name: "a"      # of the shop\n        match: { path: {type: prefix, value: /} }\n\n        action:\n                type: respond\n                status: 0xc8\n`,
  );
  await chmod(file, 0o640);
  assert.equal((await run(directory, ["fmt", "a.yaml", "--check"])).code, 1);
  assert.deepEqual(await run(directory, ["fmt", "a.yaml"]), { code: 0, out: "", err: "" });
  const formatted = `# The only route.\nroutes:\n  - name: "a" # of the shop\n    match: {path: {type: prefix, value: /}}\n\n    action:\n      type: respond\n      status: 0xc8\n`;
  assert.equal(await readFile(file, "utf8"), formatted);
  assert.equal((await stat(file)).mode & 0o777, 0o640);
  assert.equal((await run(directory, ["fmt", "a.yaml", "--check"])).code, 0);
  const before = await stat(file);
  await run(directory, ["fmt", "a.yaml"]);
  assert.equal((await stat(file)).ino, before.ino, "what is even already is not written again");
});

void test("fmt keeps JSON as JSON with every digit, and leaves a file with errors of syntax as it is", async () => {
  await using directory = await temporaryDirectory();
  await writeFile(
    directory.file("a.json"),
    '{"consumers":[{"name":"c","quotas":{"daily_requests":18446744073709551615}}]}',
  );
  await writeFile(directory.file("bad.yaml"), "routes: [\n");
  assert.equal((await run(directory, ["fmt", "a.json"])).code, 0);
  const text = await readFile(directory.file("a.json"), "utf8");
  assert.match(text, /^\{\n {2}"consumers": \[\n/);
  assert.match(text, /"daily_requests": 18446744073709551615\n/);
  const { code, err } = await run(directory, ["fmt", "bad.yaml"]);
  assert.equal(code, 1);
  assert.match(err, /^bad\.yaml:\d+:\d+: .*\[syntax\]\n$/);
  assert.equal(await readFile(directory.file("bad.yaml"), "utf8"), "routes: [\n");
});

void test("diff names what differs, says so when nothing does, and ends with 1 only when a file cannot be read", async () => {
  await using directory = await temporaryDirectory();
  await writeFile(
    directory.file("a.yaml"),
    `${good}policies: [{name: p}]\nconsumers: [{name: c, credentials: [{type: api_key, key: hunter2}]}]\n`,
  );
  await writeFile(
    directory.file("b.yaml"),
    `${good.replace("200", "204")}upstreams: [{name: u}]\nconsumers: [{name: c, credentials: [{type: api_key, key: hunter3}]}]\n`,
  );
  await writeFile(directory.file("bad.yaml"), "x: 1\n");
  assert.deepEqual(await run(directory, ["diff", "a.yaml", "b.yaml"]), {
    code: 0,
    out: "+ upstream u\n~ route a (/action/status)\n~ consumer c (/credentials/0/key)\n- policy p\n",
    err: "",
  });
  assert.deepEqual(await run(directory, ["diff", "a.yaml", "a.yaml"]), { code: 0, out: "no differences\n", err: "" });
  const bad = await run(directory, ["diff", "bad.yaml", "a.yaml"]);
  assert.deepEqual([bad.code, bad.err], [1, 'bad.yaml:1:1: "x" is not a field of the document [unknown_field]\n']);
  const { out } = await run(directory, ["diff", "a.yaml", "b.yaml", "--json"]);
  const { changes } = JSON.parse(out) as { changes: unknown[] };
  assert.deepEqual(changes[0], { kind: "upstream", name: "u", change: "added", pointers: [] });
});

void test("schema prints JSON Schema", async () => {
  await using directory = await temporaryDirectory();
  const { code, out } = await run(directory, ["schema"]);
  assert.equal(code, 0);
  assert.equal((JSON.parse(out) as Record<string, unknown>)["$schema"], "https://json-schema.org/draft/2020-12/schema");
});

void test("plan says what changes and who feels it, and refuses what could not be published", async () => {
  await using directory = await temporaryDirectory();
  const upstream = (port: number): string =>
    `upstreams: [{name: u, endpoints: [{address: h, port: ${port}}]}]\nservices: [{name: s, upstream: u}]\nroutes: [{name: r, service: s, match: {path: {type: prefix, value: /}}, action: {type: proxy}}]\n`;
  await writeFile(directory.file("a.yaml"), upstream(1));
  await writeFile(directory.file("b.yaml"), upstream(2));
  await writeFile(directory.file("bad.yaml"), upstream(2).replace("service: s", "service: t"));
  assert.deepEqual(await run(directory, ["plan", "a.yaml", "b.yaml"]), {
    code: 0,
    out: "~ upstream u (/endpoints/0/port)\naffected routes: r\nchanged upstreams: u\n",
    err: "",
  });
  assert.deepEqual(await run(directory, ["plan", "a.yaml", "a.yaml"]), { code: 0, out: "no differences\n", err: "" });
  const json = JSON.parse((await run(directory, ["plan", "a.yaml", "b.yaml", "--json"])).out) as { routes: string[] };
  assert.deepEqual(json.routes, ["r"]);
  const bad = await run(directory, ["plan", "a.yaml", "bad.yaml"]);
  assert.deepEqual([bad.code, bad.out], [1, ""]);
  assert.match(bad.err, /There is no service "t"\. Did you mean "s"\? \[unknown_reference\]\n$/);
  assert.equal((await run(directory, ["plan", "none.yaml", "b.yaml"])).code, 1);
});

void test("explain says which route takes a request and why", async () => {
  await using directory = await temporaryDirectory();
  await writeFile(
    directory.file("a.yaml"),
    `upstreams: [{name: u, endpoints: [{address: h, port: 1}]}]
services: [{name: s, upstream: u}]
consumers: [{name: c, credentials: [{type: api_key, key: "\${NOT_HERE}"}]}]
routes:
  - {name: v1, service: s, match: {path: {type: prefix, value: /v1}, headers: {x-beta: "yes"}}, action: {type: proxy, rewrite: {type: strip_prefix}}}
  - {name: rest, match: {path: {type: prefix, value: /}}, action: {type: respond, status: 200}}
`,
  );
  const args = ["explain", "-c", "a.yaml", "--path", "/v1/users?a=1"];
  const hit = await run(directory, [...args, "--header", "X-Beta: \tyes "]);
  assert.deepEqual([hit.code, hit.err], [0, ""]);
  assert.match(hit.out, /^GET \/v1\/users\?a=1\nrouted: .*\nroute: v1\nupstream target: \/users\?a=1\n/);
  assert.match(hit.out, /\n {2}match {4}headers x-beta: expected yes, found "yes"\n/);
  const miss = await run(directory, [...args, "--method", "POST"]);
  assert.match(miss.out, /^POST .*\nno_route: /);
  assert.match(miss.out, /\n {2}mismatch headers x-beta: expected yes, found none\n/);
  const json = JSON.parse((await run(directory, [...args, "--json"])).out) as { decision: string };
  assert.equal(json.decision, "no_route");
  const odd = await run(directory, [...args, "--header", "nonsense"]);
  assert.deepEqual([odd.code, odd.err], [2, 'sluice: --header takes "Name: value", not "nonsense"\n']);
});

void test("explain says what the route answers before its action", async () => {
  await using directory = await temporaryDirectory();
  await writeFile(
    directory.file("a.yaml"),
    `routes:
  - {name: a, methods: [GET], auth_required: true, match: {path: {type: prefix, value: /}}, action: {type: respond, status: 200}}
`,
  );
  const args = ["explain", "-c", "a.yaml", "--path", "/"];
  const { out } = await run(directory, [...args, "--method", "PUT"]);
  assert.match(out, /\nroute: a\n405 method_not_allowed: The route "a" allows GET and no other method\n/);
  const json = JSON.parse((await run(directory, [...args, "--json"])).out) as { gate: { code: string } };
  assert.equal(json.gate.code, "unauthorized");
});

const elsewhere = `listeners:
  - {name: tls, address: 0.0.0.0, port: 443, protocol: https, tls: {cert_file: /srv/none/cert.pem, key_file: /srv/none/key.pem}}
admin: {bind: "127.0.0.1:2019"}
consumers:
  - {name: a, credentials: [{type: api_key, key: "\${ABSENT_KEY}"}]}
  - {name: b, credentials: [{type: api_key, key: "\${file:/srv/none/key}"}]}
jwt_providers: [{name: p, issuer: "https://i/", jwks_url: "https://i/keys", trusted_ca_file: /srv/none/ca.pem}]
webhooks: [{url: "https://h/", events: [config_published], headers: {X-Key: "\${ABSENT_TOO}"}}]
routes:
  - name: r
    match: {path: {type: prefix, value: /}}
    action: {type: respond, status: 200}
`;
const places = [
  "/listeners/0/tls/cert_file",
  "/listeners/0/tls/key_file",
  "/admin/tls",
  "/consumers/0/credentials/0/key",
  "/consumers/1/credentials/0/key",
  "/jwt_providers/0/trusted_ca_file",
  "/webhooks/0/headers/X-Key",
];

void test("--offline names what only the gateway's machine has, and checks everything else", async (context) => {
  const { checks, stop } = allChecks();
  context.after(stop);
  await using directory = await temporaryDirectory();
  await writeFile(directory.file("far.yaml"), elsewhere);
  const online = await run(directory, ["validate", "--json", "far.yaml"], checks);
  const issuesIn = ({ out }: Ran): { code: string; path: string; message: string }[] =>
    (JSON.parse(out) as { issues: { code: string; path: string; message: string }[] }).issues;
  assert.equal(online.code, 1);
  const json = await run(directory, ["validate", "--offline", "--json", "far.yaml"], checks);
  assert.equal(json.code, 0, json.out);
  assert.deepEqual(
    issuesIn(json).map(({ code, path }) => `${code} ${path}`),
    places.map((path) => `not_checked ${path}`),
  );
  const text = await run(directory, ["validate", "--offline", "far.yaml"], checks);
  assert.equal(text.out, "ok: 1 routes; not checked, since missing on this machine: 7\n");
  assert.match(
    text.err,
    /^not checked: far\.yaml:5:\d+: consumers\[0\]\.credentials\[0\]\.key cannot be resolved: the environment variable ABSENT_KEY is not set \[not_checked\]$/m,
  );
  assert.equal(text.err.trimEnd().split("\n").length, 7);
  assert.equal((await run(directory, ["lint", "--offline", "far.yaml"], checks)).code, 0);
  const planned = await run(directory, ["plan", "--offline", "far.yaml", "far.yaml"], checks);
  assert.deepEqual([planned.code, planned.out, planned.err], [0, "no differences\n", text.err]);
  const explained = await run(directory, ["explain", "--offline", "-c", "far.yaml", "--path", "/x"], checks);
  assert.deepEqual([explained.code, explained.err], [0, text.err]);
  for (const [wrong, code] of [
    [elsewhere.replace("${ABSENT_KEY}", "${ABSENT KEY}"), "secret_malformed /consumers/0/credentials/0/key"],
    [elsewhere.replace("127.0.0.1:2019", "nowhere"), "bad_value /admin/bind"],
    [elsewhere.replace("127.0.0.1:2019", "10.0.0.1:2019"), "required /admin/tls"],
    [elsewhere.replace("/srv/none/ca.pem", directory.file("far.yaml")), "bad_file /jwt_providers/0/trusted_ca_file"],
    [`${elsewhere}    service: none\n`, "unknown_reference /routes/0/service"],
    [elsewhere.replace("X-Key", "X Key"), "bad_header /webhooks/0/headers/X Key"],
    [
      elsewhere.replace("prefix, value", "regex, value").replace("value: /}", "value: (}"),
      "regex_invalid /routes/0/match/path/value",
    ],
  ] as const) {
    await writeFile(directory.file("far.yaml"), wrong);
    const refused = await run(directory, ["validate", "--offline", "--json", "far.yaml"], checks);
    assert.ok(
      refused.code === 1 && issuesIn(refused).some((issue) => `${issue.code} ${issue.path}` === code),
      `${code}: ${refused.out}`,
    );
  }
});

void test("no command prints a secret", async () => {
  await using directory = await temporaryDirectory();
  const key = (text: string): string => `${good}consumers: [{name: c, credentials: [{type: api_key, key: ${text}}]}]\n`;
  await writeFile(directory.file("a.yaml"), key("inline-s3cret-1"));
  await writeFile(directory.file("b.yaml"), key('"inline-s3cret-2${"'));
  await writeFile(directory.file("c.yaml"), key('"${KEY}"'));
  for (const args of [
    ["validate", "a.yaml"],
    ["validate", "b.yaml", "--json"],
    ["validate", "c.yaml", "--json"],
    ["lint", "b.yaml"],
    ["diff", "a.yaml", "b.yaml", "--json"],
    ["fmt", "b.yaml"],
  ]) {
    const { out, err } = await run(directory, args);
    assert.ok(!(out + err).includes("s3cret"), args.join(" "));
  }
});

void test("a document comes from standard input for -, be that a pipe or a socket, which cannot be opened by its name", async () => {
  await using directory = await temporaryDirectory();
  assert.deepEqual(await run(directory, ["validate", "-"]), { code: 0, out: "ok: 1 routes\n", err: "" });
  // What a process of Node gives to its children is a socket.
  const sluice = fileURLToPath(new URL("../../bin/sluice.js", import.meta.url));
  const { code, stdout, stderr } = await runProcess(process.execPath, [sluice, "validate", "-"], { input: good });
  assert.deepEqual([code, stdout, stderr], [0, "ok: 1 routes\n", ""]);
});
