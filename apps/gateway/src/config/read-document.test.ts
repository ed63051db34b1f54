import assert from "node:assert/strict";
import { test } from "node:test";
import { compileValueValidator } from "@headworks/contract-kit/server";
import { DocumentSchema } from "@headworks/gateway-contract";
import type { Issue, IssueCode } from "@headworks/gateway-contract";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { parse } from "yaml";
import { documentSchema, readDocument, readingSteps } from "./read-document.ts";
import { KNOWN_KEYWORDS, type Schema } from "./schema-shape.ts";
import { MAX_DOCUMENT_BYTES } from "./yaml-source.ts";

/** What is wrong, as `code path line:column message`. */
const told = (text: string): string[] => shown(readDocument(text).issues);

function shown(issues: readonly Issue[]): string[] {
  return issues.map(({ code, path, line, column, message }) => `${code} ${path} ${line}:${column} ${message}`);
}

const cases: readonly (readonly [string, string, ...string[]])[] = [
  ["nothing at all", "", "syntax  1:1 The document is empty"],
  ["only a comment", "# nothing\n", "syntax  1:1 The document is empty"],
  ["a list at the root", "- a", "type  1:1 The document must be a mapping; it is a list"],
  ["a text at the root", "hello", "type  1:1 The document must be a mapping; it is a text"],
  [
    "a bracket that is not closed",
    "routes: [",
    "syntax  1:10 The indentation does not fit what is around it, or a bracket before it is not closed",
  ],
  [
    "two documents",
    "{}\n---\n{}",
    "syntax  2:1 The file has more than one document; keep what is before the second ---",
  ],
  ["an unknown tag", "version: !secret 1", "syntax  1:10 This tag is not known; documents have plain values only"],
  ["a tag of YAML 1.1", "gateway: !!set {}", "syntax  1:10 This tag is not known; documents have plain values only"],
  [
    "an alias of nothing",
    "gateway: *nowhere",
    "syntax /gateway 1:10 The alias names an anchor that does not exist before it",
  ],
  ["a key twice", "routes: []\nroutes: []", 'syntax /routes 2:1 "routes" occurs twice in the same mapping'],
  [
    "a key twice, deep inside",
    '{"webhooks": [{"url": "http://a", "events": [], "url": "http://b"}]}',
    'syntax /webhooks/0/url 1:49 "url" occurs twice in the same mapping',
  ],
  ["a key that is a list", "? [a]\n: 1", "syntax  1:3 Keys have to be texts"],
  [
    "a merge key, which YAML 1.2 has not",
    "gateway:\n  <<: {}",
    'unknown_field /gateway/<< 2:3 "<<" is not a field of gateway',
  ],
  [
    "an unknown section",
    "route: []",
    'unknown_field /route 1:1 "route" is not a field of the document. Did you mean "routes"?',
  ],
  [
    "an unknown field",
    "listeners:\n  - name: a\n    address: ::1\n    prot: 1\n    port: 2",
    'unknown_field /listeners/0/prot 4:5 "prot" is not a field of listeners[0]. Did you mean "port"?',
  ],
  [
    "an unknown field with characters of pointers",
    '"a/b~c": 1',
    'unknown_field /a~1b~0c 1:1 "a/b~c" is not a field of the document',
  ],
  [
    "a field that is missing",
    "upstreams:\n  - endpoints: []",
    'required /upstreams/0/name 2:5 upstreams[0] needs "name"',
  ],
  [
    "a number where a text belongs",
    "policies: [{name: 7}]",
    "type /policies/0/name 1:19 policies[0].name must be a text; it is a number; put it in quotes",
  ],
  [
    "a text where a number belongs",
    'listeners: [{name: a, address: b, port: "80"}]',
    "type /listeners/0/port 1:41 listeners[0].port must be a whole number; it is a text; write it without quotes",
  ],
  [
    "a fraction where a whole number belongs",
    "gateway: {max_concurrent_requests: 1.5}",
    "type /gateway/max_concurrent_requests 1:36 gateway.max_concurrent_requests must be a whole number; it has a fraction",
  ],
  [
    "no value",
    "gateway:\n  ssrf_filter:\n",
    "type /gateway/ssrf_filter 2:3 gateway.ssrf_filter must be a mapping; it has no value",
  ],
  ["a mapping where a list belongs", "routes: {}", "type /routes 1:9 routes must be a list; it is a mapping"],
  ["a list where a mapping belongs", "admin: []", "type /admin 1:8 admin must be a mapping; it is a list"],
  [
    "yes, which is a text in YAML 1.2",
    "gateway: {load_shed_dry_run: yes}",
    "type /gateway/load_shed_dry_run 1:30 gateway.load_shed_dry_run must be true or false; it is a text; write true",
  ],
  [
    "too large a number",
    "listeners: [{name: a, address: b, port: 65536}]",
    "out_of_range /listeners/0/port 1:41 listeners[0].port must be a whole number from 0 to 65535; it is 65536",
  ],
  [
    "a number of 30 digits",
    "gateway: {shutdown_timeout_ms: 100000000000000000000000000000}",
    "out_of_range /gateway/shutdown_timeout_ms 1:32 gateway.shutdown_timeout_ms must be a whole number from 1 to 2000000000; it is 1e+29",
  ],
  [
    "a ratio out of its bounds",
    "upstreams: [{name: a, breaker: {error_ratio: 0}}]",
    "out_of_range /upstreams/0/breaker/error_ratio 1:46 upstreams[0].breaker.error_ratio must be above 0 and at most 1; it is 0",
  ],
  [
    "no number",
    "upstreams: [{name: a, breaker: {error_ratio: .nan}}]",
    "type /upstreams/0/breaker/error_ratio 1:46 upstreams[0].breaker.error_ratio must be a number; it is not finite",
  ],
  [
    "a budget below zero",
    "consumers: [{name: a, quotas: {daily_requests: -1}}]",
    "out_of_range /consumers/0/quotas/daily_requests 1:48 consumers[0].quotas.daily_requests must be a whole number from 1 to 18446744073709551615; it is -1",
  ],
  [
    "a budget above 64 bits",
    "consumers: [{name: a, quotas: {daily_requests: 18446744073709551616}}]",
    "out_of_range /consumers/0/quotas/daily_requests 1:48 consumers[0].quotas.daily_requests must be a whole number from 1 to 18446744073709551615; it is 18446744073709551616",
  ],
  [
    "an empty text",
    "routes: [{name: '', match: {path: {type: exact, value: /}}, action: {type: proxy}}]",
    "out_of_range /routes/0/name 1:17 routes[0].name must not be empty",
  ],
  [
    "a long name",
    `policies: [{name: ${"n".repeat(256)}}]`,
    "out_of_range /policies/0/name 1:19 policies[0].name may have at most 255 characters; it has 256",
  ],
  [
    "a list that is too short",
    "services: [{name: a, split: {targets: [{upstream: x}]}}]",
    "out_of_range /services/0/split/targets 1:39 services[0].split.targets needs at least 2 values",
  ],
  [
    "a value twice",
    "policies: [{name: a, rate_limits: [{selector: [ip, ip], requests_per: {s: 1}}]}]",
    "bad_value /policies/0/rate_limits/0/selector 1:47 policies[0].rate_limits[0].selector has the same value twice",
  ],
  [
    "a block without content",
    "policies: [{name: a, rate_limits: [{selector: [ip], requests_per: {}}]}]",
    "out_of_range /policies/0/rate_limits/0/requests_per 1:67 policies[0].rate_limits[0].requests_per needs at least 1 field",
  ],
  [
    "a choice that does not exist",
    "upstreams: [{name: a, load_balancer: roundrobin}]",
    'bad_value /upstreams/0/load_balancer 1:38 upstreams[0].load_balancer must be one of "round_robin", "least_requests", "random", "ip_hash", "header_hash", "peak_ewma". Did you mean "round_robin"?',
  ],
  ["another version", "version: 2", "bad_value /version 1:10 version must be 1"],
  [
    "a text with a form",
    "gateway: {request_id_header: 'x y'}",
    "bad_value /gateway/request_id_header 1:30 gateway.request_id_header must be one or more letters, digits and characters of !#$%&'*+-.^_`|~",
  ],
  [
    "a union without a type",
    "consumers: [{name: a, credentials: [{key: k}]}]",
    'required /consumers/0/credentials/0/type 1:37 consumers[0].credentials[0] needs "type", one of "api_key", "basic", "jwt", "mtls", "hmac"',
  ],
  [
    "a union with an unknown type",
    "consumers: [{name: a, credentials: [{type: apikey}]}]",
    'bad_value /consumers/0/credentials/0/type 1:44 consumers[0].credentials[0].type must be one of "api_key", "basic", "jwt", "mtls", "hmac". Did you mean "api_key"?',
  ],
  [
    "a field of another branch of a union",
    "consumers: [{name: a, credentials: [{type: basic, key: k, username: u, password: p}]}]",
    'unknown_field /consumers/0/credentials/0/key 1:51 "key" is not a field of consumers[0].credentials[0]',
  ],
  [
    "a field that the branch of a union needs",
    "consumers: [{name: a, credentials: [{type: hmac, key_id: k}]}]",
    'required /consumers/0/credentials/0/secret 1:37 consumers[0].credentials[0] needs "secret"',
  ],
  [
    "a setting in both places",
    "trusted_proxies: []\ngateway: {trusted_proxies: []}",
    'duplicate_setting /trusted_proxies 1:1 "trusted_proxies" is set at the root and under "gateway"; keep one of them',
  ],
  [
    "several things at once, in the order of the text",
    "webhooks: [{url: 1, timeout_ms: 0}]\nsurprise: 1",
    'required /webhooks/0/events 1:12 webhooks[0] needs "events"',
    "type /webhooks/0/url 1:18 webhooks[0].url must be a text; it is a number; put it in quotes",
    "out_of_range /webhooks/0/timeout_ms 1:33 webhooks[0].timeout_ms must be a whole number from 1 to 60000; it is 0",
    'unknown_field /surprise 2:1 "surprise" is not a field of the document',
  ],
];

for (const [name, text, ...expected] of cases) {
  void test(`an issue has code, pointer, line, column and a sentence: ${name}`, () =>
    assert.deepEqual(told(text), expected));
}

void test("every code of an issue that structure can have is in the table above", () => {
  const codes = new Set(cases.flatMap(([, , ...lines]) => lines.map((line) => line.split(" ")[0])));
  const all: IssueCode[] = [
    "syntax",
    "unknown_field",
    "required",
    "type",
    "out_of_range",
    "bad_value",
    "duplicate_setting",
  ];
  assert.deepEqual(codes, new Set(all));
});

void test("settings of the gateway may stand at the root or under gateway, and mean the same", () => {
  const inside = readDocument("gateway: {trusted_proxies: [10.0.0.0/8], name: x}");
  const outside = readDocument("trusted_proxies: [10.0.0.0/8]\nname: x");
  const mixed = readDocument("trusted_proxies: [10.0.0.0/8]\ngateway: {name: x}");
  for (const { issues, document } of [inside, outside, mixed]) {
    assert.deepEqual(issues, []);
    assert.deepEqual(document?.gateway, { trusted_proxies: ["10.0.0.0/8"], name: "x" });
  }
  const fieldPath = ["gateway", "trusted_proxies", 0];
  assert.deepEqual(inside.positions.locate(fieldPath), { path: "/gateway/trusted_proxies/0", line: 1, column: 29 });
  assert.deepEqual(outside.positions.locate(fieldPath), { path: "/trusted_proxies/0", line: 1, column: 19 });
  assert.deepEqual(mixed.positions.locate(["gateway", "name"]), { path: "/gateway/name", line: 2, column: 17 });
});

void test("a directive for YAML 1.1 does not bring its words and numbers back", () => {
  const { document, issues } = readDocument(
    "%YAML 1.1\n---\npolicies: [{name: yes}, {name: 1:30}, {name: 2026-01-01}, {name: 0b1}]\n",
  );
  assert.deepEqual(issues, []);
  assert.deepEqual(
    document?.policies.map(({ name }) => name),
    ["yes", "1:30", "2026-01-01", "0b1"],
  );
  assert.deepEqual(
    told("%YAML 3.0\n---\nname: a").map((line) => line.split(" ")[0]),
    ["syntax"],
  );
});

void test("sections without a value are empty sections", () => {
  const { issues, document } = readDocument("routes:\n#  - name: a\ngateway:\nadmin:\n");
  assert.deepEqual(issues, []);
  assert.deepEqual(document?.routes, []);
  assert.deepEqual(document?.gateway, {});
});

void test("what could not be read has stand-ins that differ from draft to draft; all else is the same in each", () => {
  const { document, input, drafts, unread, positions } = readDocument(
    "upstreams:\n  - nam: x\n    load_balancer: rand\n  - name: second\n    slow_start_ms: 5\n  - name: third\n",
  );
  assert.deepEqual([document, input], [undefined, undefined]);
  assert.deepEqual([...unread], ["/upstreams/0/load_balancer", "/upstreams/0/name"]);
  const balancers = drafts.map(({ upstreams }) => upstreams[0]?.load_balancer);
  const known = documentSchema.properties?.["upstreams"]?.items?.properties?.["load_balancer"]?.enum;
  assert.deepEqual(balancers, [...(known ?? []), undefined]);
  for (const { upstreams } of drafts) {
    assert.equal(typeof upstreams[0]?.name, "string");
    assert.deepEqual(upstreams.slice(1), [{ name: "second", slow_start_ms: 5 }, { name: "third" }]);
  }
  assert.deepEqual(positions.locate(["upstreams", 1, "name"]), { path: "/upstreams/1/name", line: 4, column: 11 });
  assert.deepEqual(positions.locate(["upstreams", 2, "tls"]), { path: "/upstreams/2/tls", line: 6, column: 5 });
});

void test("numbers of 64 bits are exact bigints, all others are numbers", () => {
  for (const text of ["18446744073709551615", "9007199254740993", "1", "0x10", "1e3"]) {
    const { document, issues } = readDocument(`consumers: [{name: a, priority: 5, quotas: {daily_requests: ${text}}}]`);
    assert.deepEqual(issues, []);
    assert.deepEqual(document?.consumers[0], {
      name: "a",
      priority: 5,
      quotas: { daily_requests: BigInt(Number(text) < 2 ** 53 ? Number(text) : text) },
    });
  }
  const { issues } = readDocument("consumers: [{name: a, quotas: {daily_requests: 18446744073709551615.0}}]");
  assert.deepEqual(
    issues.map(({ code }) => code),
    ["type"],
    "digits that a float has lost are not guessed",
  );
});

void test("names of prototypes are names like others", () => {
  const respond = (headers: string): string =>
    `routes: [{name: a, match: {path: {type: exact, value: /}}, action: {type: respond, status: 200, headers: ${headers}}}]`;
  const { document, issues } = readDocument(respond('{"__proto__": evil, constructor: c, toString: t}'));
  assert.deepEqual(issues, []);
  const action = document?.routes[0]?.action;
  const headers = action?.type === "respond" ? action.headers : undefined;
  assert.deepEqual(Object.entries(headers ?? {}), [
    ["__proto__", "evil"],
    ["constructor", "c"],
    ["toString", "t"],
  ]);
  assert.equal(headers?.["hasOwnProperty"], undefined);
  for (const text of ['{"__proto__": {"routes": []}}', "constructor: {}", "gateway: {__proto__: {name: x}}"]) {
    const reading = readDocument(text);
    assert.deepEqual(
      reading.issues.map(({ code }) => code),
      ["unknown_field"],
      text,
    );
    assert.equal(reading.document?.gateway.name, undefined);
  }
  assert.equal(({} as Record<string, unknown>)["name"], undefined);
});

void test("relative paths of files start at the configuration's directory; what was written stays as it was", () => {
  const text = "upstreams: [{name: a, trusted_ca_file: roots.pem, tls: {server_name: x, client_key_file: /abs/key}}]";
  const { document, input } = readDocument(text, "/etc/sluice");
  assert.equal(document?.upstreams[0]?.trusted_ca_file, "/etc/sluice/roots.pem");
  assert.equal(document?.upstreams[0]?.tls?.client_key_file, "/abs/key");
  assert.equal(input?.upstreams?.[0]?.trusted_ca_file, "roots.pem");
});

const billionLaughs = (() => {
  const lines = ["gateway:", "  global_policies: &a0 [x, x, x, x, x, x, x, x, x]"];
  for (let at = 1; at < 12; at++) {
    lines.push(`k${at}: &a${at} [${Array.from({ length: 9 }, () => `*a${at - 1}`).join(", ")}]`);
  }
  return lines.join("\n");
})();

const keys = (count: number): string => Array.from({ length: count }, (_, at) => `k${at}: 1`).join("\n");

const hostile: readonly (readonly [string, () => string, RegExp])[] = [
  ["billion laughs outside of the schema", () => billionLaughs, /^unknown_field \/k1 /],
  [
    "a list of names aliased a hundred thousand times",
    () => {
      const names = Array.from({ length: 2000 }, (_, at) => `n${at}`).join(", ");
      const consumers = Array.from({ length: 2000 }, (_, at) => `  - {name: c${at}, groups: *g}`).join("\n");
      return `gateway: {global_policies: &g [${names}]}\nconsumers:\n${consumers}`;
    },
    /Aliases may stand for at most 100000 values/,
  ],
  ["an alias of the list it is in", () => "routes: &a [*a]", /^type \/routes\/0 /],
  ["100,000 brackets", () => "[".repeat(100_000), /nested more than 64 levels deep/],
  ["100,000 brackets, closed", () => "[".repeat(100_000) + "]".repeat(100_000), /nested more than 64 levels deep/],
  ["70 mappings in each other", () => `${'{"a":'.repeat(70)}1${"}".repeat(70)}`, /nested more than 64 levels deep/],
  ["50,000 nested dashes", () => "- ".repeat(50_000), /nested more than 64 levels deep/],
  [
    "a scalar of 4 MiB",
    () => `gateway: {name: ${"x".repeat(MAX_DOCUMENT_BYTES - 20)}}`,
    /^out_of_range \/gateway\/name .* at most 64 characters/,
  ],
  [
    "a byte too many",
    () => `#${"x".repeat(MAX_DOCUMENT_BYTES)}`,
    /^syntax {2}1:1 The document may have at most 4194304 bytes; it has 4194305$/,
  ],
  ["10,000 keys", () => keys(10_000), /^unknown_field \/k0 /],
  ["10,000 times the same key", () => "a: 1\n".repeat(10_000), /^syntax \/a 2:1 "a" occurs twice/],
  ["a byte order mark in the middle", () => "name: a\n\ufeffname: b", /./],
  ["control characters", () => "name: \u0000\u0001\u001b[31m", /./],
  ["a lone surrogate", () => 'name: "\ud800"', /./],
];

const MAX_TEXT = 3 * 1024 * 1024;
const filled = (piece: string): string => piece.repeat(MAX_TEXT / piece.length);
const endless: readonly (readonly [string, string, RegExp])[] = [
  ["brackets", filled("["), /^syntax {2}1:72 The document is nested more than 64 levels deep$/],
  ["braces", filled("{"), /nested more than 64 levels deep$/],
  ["mappings in each other", filled('{"a":'), /nested more than 64 levels deep$/],
  ["dashes", filled("- "), /nested more than 64 levels deep$/],
  ["question marks", filled("? "), /nested more than 64 levels deep$/],
  ["brackets in a section", `name: a\nroutes: ${filled("[")}`, /^syntax {2}2:\d+ The document is nested more than 64 /],
  ["closing brackets", filled("]"), /^syntax {2}1:501 The text is not YAML in more than 500 places/],
  ["directives", filled("%a\n"), /^syntax {2}\d+:\d+ The text is not YAML in more than 500 places/],
  ["documents", filled("---\n"), /^syntax {2}\d+:\d+ The file has more than one document/],
  ["keys", keys(200_000), /^syntax {2}10001:1 A mapping may have at most 10000 keys$/],
  ["keys of a section", filled("gateway:\n  a: 1\n"), /^syntax .* A mapping may have at most 10000 keys$/],
  ["times the same key", filled("a: 1\n"), /^syntax .* A mapping may have at most 10000 keys$/],
  ["times the same key in JSON", `{${filled('"a":1,')}"a":1}`, /^syntax .* A mapping may have at most 10000 keys$/],
];

for (const [name, text, expected] of endless) {
  void test(`a text without end of one thing is left after its beginning: ${name}`, () => {
    const reading = readingSteps(text, ".");
    let steps = 1;
    let step = reading.next();
    for (; step.done !== true; step = reading.next()) steps += 1;
    const issues = shown(step.value.issues);
    assert.ok(
      issues.some((issue) => expected.test(issue)),
      issues.slice(0, 3).join("\n"),
    );
    assert.ok(steps <= 15, `${steps} steps`);
  });
}

void test("what is nested 64 levels deep is read, in whatever way it is written", () => {
  const nested = [
    `${"[".repeat(65)}${"]".repeat(65)}`,
    `${'{"a": '.repeat(64)}1${"}".repeat(64)}`,
    `${"{a: ".repeat(64)}1${"}".repeat(64)}`,
    `${"- ".repeat(64)}1`,
    Array.from({ length: 64 }, (_, at) => `${"  ".repeat(at)}a:`).join("\n"),
  ];
  for (const text of nested) assert.doesNotMatch(told(text).join("\n"), /nested/, text);
  for (const text of [`[${nested[0] ?? ""}]`, `- - ${nested[3] ?? ""}`]) assert.match(told(text).join("\n"), /nested/);
});

/** Processor time for a document of two megabytes that nothing is wrong with. */
function honestCostUs(): number {
  const text = `consumers:\n${Array.from({ length: 60_000 }, (_, at) => `  - {name: consumer-number-${at}}`).join("\n")}\n`;
  const before = process.cpuUsage();
  assert.deepEqual(told(text), []);
  return process.cpuUsage(before).user;
}

for (const [name, make, expected] of hostile) {
  void test(`hostile text gives issues in bounded time: ${name}`, { timeout: 120_000 }, () => {
    const text = make();
    const before = process.cpuUsage();
    const issues = told(text);
    const { user } = process.cpuUsage(before);
    assert.ok(
      issues.some((issue) => expected.test(issue)),
      issues.slice(0, 3).join("\n"),
    );
    assert.ok(issues.length <= 1001, `${issues.length} issues`);
    // Five seconds of one core, and on a core that is slower than usual three times what it takes for an honest document.
    assert.ok(user < 5_000_000 || user < 3 * honestCostUs(), `${user} us`);
  });
}

void test("any text gives issues or a document, never a throw", () => {
  const pieces = fc.constantFrom(
    ..."routes: |consumers: |name: |gateway: |- |  |\n|{|}|[|]|,|\"|'|&a |*a|!t |? |: |#|%YAML 1.1\n|---|...|| |>\n|<<: |1|18446744073709551616|null|~|\t|\ufeff|é|😀|\ud83d|\u0000".split(
      "|",
    ),
  );
  const texts = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 80 }),
    fc.array(pieces, { maxLength: 40 }).map((all) => all.join("")),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const { document, issues } = readDocument(text);
      assert.ok(document !== undefined || issues.length > 0);
    }),
    { numRuns: 3000 },
  );
});

void test("any JSON value gives issues or a document, never a throw", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const { document, issues } = readDocument(JSON.stringify(value));
      assert.ok(document !== undefined || issues.length > 0);
    }),
    { numRuns: 1000 },
  );
});

/** Values near what a schema asks for: mostly right, sometimes a little wrong, sometimes something else. */
function nearly(schema: Schema): fc.Arbitrary<unknown> {
  const wrong = fc.constantFrom<unknown>("", "x", -1, 0, 1.5, 99_999_999_999, true, [], {}, ["x", "x"], { type: "x" });
  return fc.oneof({ weight: 12, arbitrary: right(schema) }, { weight: 1, arbitrary: wrong });
}

function right(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(nearly));
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case "object":
      return rightObject(schema);
    case "array":
      return fc.array(nearly(schema.items ?? {}), { maxLength: 3 });
    case "integer":
    case "number":
      return fc.constantFrom(schema.minimum ?? 0, 1, schema.maximum ?? 7, (schema.maximum ?? 7) + 1, 0.5);
    case "boolean":
      return fc.boolean();
    default:
      return fc.constantFrom("name", "/path", "http://h/", "a b", "2xx", "é", "x".repeat(300), "10.0.0.0/8");
  }
}

function rightObject(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.properties === undefined) {
    return fc.dictionary(
      fc.constantFrom("a", "B-c", "__proto__"),
      nearly(Object.values(schema.patternProperties ?? {})[0] ?? {}),
      { noNullPrototype: true },
    );
  }
  const members = Object.fromEntries(Object.entries(schema.properties).map(([name, inner]) => [name, nearly(inner)]));
  const required = schema.required ?? [];
  const usual = fc.record(members, { requiredKeys: [...required], noNullPrototype: true });
  const incomplete = fc.record(members, { requiredKeys: [], noNullPrototype: true });
  const excessive = usual.map((value) => ({ ...value, surplus: 1 }));
  return fc.oneof(
    { weight: 20, arbitrary: usual },
    { weight: 1, arbitrary: incomplete },
    { weight: 1, arbitrary: excessive },
  );
}

void test("structure is judged as a validator of JSON Schema judges it", () => {
  const validate = compileValueValidator(DocumentSchema, "document");
  let valid = 0;
  let invalid = 0;
  for (const [name, schema] of Object.entries(documentSchema.properties ?? {})) {
    fc.assert(
      fc.property(nearly(schema), (value) => {
        const document = { [name]: value };
        const issues = readDocument(JSON.stringify(document)).issues.filter(({ code }) => code !== "duplicate_setting");
        const others = validate(parse(JSON.stringify(document), { uniqueKeys: false }));
        // The one difference: 64-bit numbers have an upper bound that JSON Schema cannot have.
        assert.equal(issues.length === 0, others.length === 0, JSON.stringify([document, issues, others]));
        if (issues.length === 0) valid += 1;
        else invalid += 1;
      }),
      { numRuns: 60 },
    );
  }
  assert.ok(valid > 100 && invalid > 100, `${valid} valid, ${invalid} invalid`);
});

void test("the schema has no keyword that reading would ignore", () => {
  const visit = (schema: Schema): void => {
    for (const keyword of Object.keys(schema)) assert.ok(KNOWN_KEYWORDS.has(keyword), keyword);
    if (schema.type === "object" && schema.properties !== undefined) assert.equal(schema.additionalProperties, false);
    const inners = [
      ...Object.values(schema.properties ?? {}),
      ...Object.values(schema.patternProperties ?? {}),
      ...(schema.anyOf ?? []),
      ...(schema.items === undefined ? [] : [schema.items]),
    ];
    for (const inner of inners) visit(inner);
    for (const branch of schema.anyOf ?? []) assert.equal(typeof branch.properties?.["type"]?.const, "string");
  };
  visit(documentSchema);
});

/** What the one issue of a document says, from its first field on. */
const oneMessage = (text: string): string => {
  const { issues } = readDocument(text, "/");
  assert.equal(issues.length, 1, JSON.stringify(issues));
  return issues[0]?.message ?? "";
};

for (const [what, text, hint] of [
  ["a duration", "upstreams: [{name: a, timeouts: {read_ms: 5s}}]", "it counts milliseconds, so write 5000"],
  ["a longer one", "upstreams: [{name: a, timeouts: {read_ms: 1m30s}}]", "it counts milliseconds, so write 90000"],
  ["one of milliseconds", "gateway: {shutdown_timeout_ms: 250ms}", "it counts milliseconds, so write 250"],
  ["a part of a second", "upstreams: [{name: a, timeouts: {read_ms: 0.5s}}]", "it counts milliseconds, so write 500"],
  [
    "seconds",
    "routes: [{name: r, match: {path: {type: prefix, value: /}}, action: {type: proxy}, maintenance: {retry_after_secs: 2m}}]",
    "it counts seconds, so write 120",
  ],
  [
    "a size",
    "routes: [{name: r, match: {path: {type: prefix, value: /}}, action: {type: proxy}, limits: {max_body_bytes: 10MB}}]",
    "it counts bytes, so write 10485760",
  ],
  ["a word for false", "gateway: {load_shed_dry_run: off}", "write false"],
  [
    "an endpoint as a text",
    'upstreams: [{name: a, endpoints: ["10.0.0.1:80"]}]',
    "write { address: 10.0.0.1, port: 80 }",
  ],
  ["a number of retries", "upstreams: [{name: a, retries: 3}]", "write { attempts: 2 }"],
  ["health: true", "upstreams: [{name: a, health: true}]", "write {} for its defaults"],
  [
    "a path as a text",
    "routes: [{name: r, match: {path: /x}, action: {type: proxy}}]",
    "write { type: prefix, value: /api }",
  ],
  [
    "an action as a text",
    "routes: [{name: r, match: {path: {type: prefix, value: /}}, action: proxy}]",
    "write { type: proxy }",
  ],
  [
    "one method",
    "routes: [{name: r, match: {path: {type: prefix, value: /}, methods: GET}, action: {type: proxy}}]",
    "write a list, in brackets",
  ],
  [
    "a query as a mapping",
    "routes: [{name: r, match: {path: {type: prefix, value: /}, query: {a: b}}, action: {type: proxy}}]",
    "write a list of { name, value }",
  ],
  ["servers", "upstreams: [{name: a, servers: []}]", "here that is endpoints"],
  ["preserve_host", "upstreams: [{name: a, preserve_host: true}]", "here that is upstream_host"],
  ["connectTimeout", "upstreams: [{name: a, connectTimeout: 5}]", "here that is timeouts"],
  [
    "paths",
    "routes: [{name: r, paths: [/x], match: {path: {type: prefix, value: /}}, action: {type: proxy}}]",
    "here that is match.path",
  ],
  [
    "strip_path",
    "routes: [{name: r, strip_path: true, match: {path: {type: prefix, value: /}}, action: {type: proxy}}]",
    "here that is action.rewrite",
  ],
  ["entryPoints", "entryPoints: []", "here that is listeners"],
  ["per second", "policies: [{name: p, rate_limits: [{selector: [ip], requests_per: {second: 5}}]}]", "here that is s"],
  ["whitelist", "gateway: {authorization: {ip_acl: {whitelist: []}}}", "here that is allow"],
] as const) {
  void test(`what other gateways write is told with the form that it has here: ${what}`, () => {
    assert.ok(oneMessage(text).endsWith(`; ${hint}`), oneMessage(text));
  });
}

for (const [text, own] of [
  ["upstreams: [{name: a, load_balancer: least_conn}]", "least_requests"],
  ["upstreams: [{name: a, load_balancer: Weighted-Round-Robin}]", "round_robin"],
  ["upstreams: [{name: a, load_balancer: chash}]", "header_hash"],
  ["upstreams: [{name: a, protocol: grpc}]", "h2c"],
  ["upstreams: [{name: a, protocol: http}]", "http1"],
  [
    "routes: [{name: r, match: {path: {type: prefix, value: /}}, action: {type: proxy}, compression: {algorithms: [br]}}]",
    "brotli",
  ],
  ["routes: [{name: r, match: {path: {type: prefix, value: /}}, action: {type: forward}}]", "proxy"],
  ["consumers: [{name: c, credentials: [{type: key-auth}]}]", "api_key"],
] as const) {
  void test(`a choice of other gateways is told as what it is called here: ${own}`, () => {
    assert.ok(oneMessage(text).endsWith(`. Did you mean "${own}"?`), oneMessage(text));
  });
}

void test("text that is neither a duration nor a size is not read as a number, and a secret in the wrong place is not repeated", () => {
  for (const value of ["5 apples", "s3cr3t", "1e3s", "ten", "5w", "9".repeat(400) + "s"]) {
    const message = oneMessage(`upstreams: [{name: a, timeouts: {read_ms: "${value}"}}]`);
    assert.match(message, /must be a whole number; it is a text(?:; it counts milliseconds)?$/, value);
  }
});
