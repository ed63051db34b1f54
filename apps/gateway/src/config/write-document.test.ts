import assert from "node:assert/strict";
import { test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import fc from "fast-check";
import { readDocument } from "./read-document.ts";
import { contentHash, hashText, normalDocument, redactedDocument, toJson, toYaml } from "./write-document.ts";

function read(text: string): DocumentInput {
  const { input, issues } = readDocument(text);
  assert.deepEqual(issues, []);
  assert.ok(input !== undefined);
  return input;
}

const full = `
webhooks:
  - {headers: {Z-Key: "\${KEY}", A-Key: hunter2}, url: "http://h/", events: [breaker_opened], signing: {secret: whsec_x}}
trusted_proxies: [10.0.0.0/8]
consumers:
  - quotas: {monthly_requests: 18446744073709551615, dry_run: false}
    credentials: [{key: "\${file:/run/key}", type: api_key}, {type: basic, username: u, password: hunter2}]
    name: c
policies: []
upstreams: [{name: u, trusted_ca_file: roots.pem, protocol: https, retries: {retry_statuses: []}, endpoints: []}]
routes:
  - {name: "yes", match: {path: {value: "/1e3", type: prefix}, headers: {b: "null", a: "0x10"}}, action: {type: respond, status: 200, body: "line\\n  two: # no comment\\n"}}
gateway: {name: x}
`;

void test("the normal form has fields in the schema's order, settings under gateway, maps sorted, empty sections left out", () => {
  const normal = normalDocument(read(full));
  assert.deepEqual(Object.keys(normal), ["gateway", "upstreams", "routes", "consumers", "webhooks"]);
  assert.deepEqual(Object.keys(normal.gateway ?? {}), ["name", "trusted_proxies"]);
  assert.deepEqual(Object.keys(normal.consumers?.[0] ?? {}), ["name", "credentials", "quotas"]);
  assert.deepEqual(Object.keys(normal.consumers?.[0]?.credentials?.[0] ?? {}), ["type", "key"]);
  assert.deepEqual(Object.keys(normal.webhooks?.[0]?.headers ?? {}), ["A-Key", "Z-Key"]);
  assert.deepEqual(
    normal.upstreams?.[0]?.retries,
    { retry_statuses: [] },
    "an empty list inside of a block means something",
  );
  assert.equal(normal.upstreams?.[0]?.trusted_ca_file, "roots.pem");
  assert.deepEqual(normal.consumers?.[0]?.quotas, { monthly_requests: 18446744073709551615n, dry_run: false });
});

void test("what is echoed has no inline secret, shows references, and tells secrets apart", () => {
  for (const text of [toYaml(redactedDocument(normalDocument(read(full)))), toJson(redactedDocument(read(full)))]) {
    assert.ok(!text.includes("hunter2") && !text.includes("whsec_x"), text);
    assert.ok(text.includes("${KEY}") && text.includes("${file:/run/key}"), text);
    assert.equal(text.match(/\$\{redacted:sha256:[0-9a-f]{8}\}/g)?.length, 3);
    assert.equal(new Set(text.match(/\$\{redacted:sha256:[0-9a-f]{8}\}/g)).size, 2);
    assert.ok(text.includes("18446744073709551615"));
  }
});

void test("a malformed reference may hold a secret, so it is redacted", () => {
  const { input } = readDocument("consumers: [{name: c, credentials: [{type: api_key, key: 'hunter2${'}]}]");
  assert.ok(input !== undefined && !toJson(redactedDocument(input)).includes("hunter2"));
});

void test("what is written reads back as the same, in YAML and in JSON", () => {
  const normal = normalDocument(read(full));
  for (const text of [toYaml(normal), toJson(normal), toJson(normal, 2)]) {
    assert.deepEqual(normalDocument(read(text)), normal);
    assert.equal(contentHash(read(text)), contentHash(read(full)));
  }
});

void test("any text and any number of 64 bits survive being written and read", () => {
  const texts = fc.oneof(
    fc.string({ unit: "grapheme", minLength: 1 }),
    fc.string({ unit: "binary-ascii", minLength: 1 }),
    fc.constantFrom(
      "yes",
      "~",
      "null",
      "1e3",
      "0o7",
      ".inf",
      "- a",
      "a: b",
      "#",
      "|",
      "*a",
      "&a",
      "!t",
      "%",
      "@",
      "`",
      "\t",
      " x ",
      "'",
      '"',
      "\\",
      "\u2028",
      "\u0085",
      "\u00a0",
      "\ufeff",
      "x\n",
      "\n",
      "\r\n",
      "---",
      "...",
      "<<",
      "=",
      "?",
      ":",
    ),
  );
  fc.assert(
    fc.property(texts, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (text, budget) => {
      const document = {
        gateway: {},
        consumers: [{ name: "c", quotas: { daily_requests: budget } }],
        routes: [
          {
            name: "r",
            match: { path: { type: "prefix", value: "/" }, headers: { [text]: text } },
            action: { type: "respond", status: 200, body: text },
          },
        ],
      };
      const normal = normalDocument(document as unknown as DocumentInput);
      assert.deepEqual(normalDocument(read(toYaml(normal))), normal);
      assert.deepEqual(normalDocument(read(toJson(normal))), normal);
    }),
    { numRuns: 1500 },
  );
});

void test("the content's hash depends on meaning, not on writing, and is exact as a JSON number", () => {
  const base =
    "name: g\nroutes: [{name: a, match: {path: {type: prefix, value: /}}, action: {type: respond, status: 200}}]";
  const same =
    "gateway: {name: g}\npolicies: []\nroutes:\n  - action: {status: 0xc8, type: respond}\n    match: {path: {value: '/', type: prefix}}\n    name: a";
  const hash = contentHash(read(base));
  assert.equal(contentHash(read(same)), hash);
  assert.ok(Number.isSafeInteger(hash) && hash > 0);
  assert.equal(Number(JSON.parse(JSON.stringify(hash))), hash);
  for (const other of [base.replace("200", "201"), base.replace("name: g", "name: h"), base.replace("/", "/x")]) {
    assert.notEqual(contentHash(read(other)), hash);
  }
  const key = (text: string): number =>
    contentHash(read(`consumers: [{name: c, credentials: [{type: api_key, key: ${text}}]}]`));
  assert.notEqual(key("one"), key("two"));
});

void test("the hash as headers have it is 0x and 14 hexadecimal digits", () => {
  assert.equal(hashText(0), "0x00000000000000");
  assert.equal(hashText(2 ** 53 - 1), "0x1fffffffffffff");
});
