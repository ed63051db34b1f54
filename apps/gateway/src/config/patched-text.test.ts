import assert from "node:assert/strict";
import { test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import { type Json, jsonPatch, mergePatch } from "@headworks/json";
import fc from "fast-check";
import { parse, stringify } from "yaml";
import { patchedTextSteps } from "./patched-text.ts";
import { readDocument } from "./read-document.ts";
import { atOnce } from "./steps.ts";
import { normalDocument, toJson } from "./write-document.ts";

const TEXT = `# The shop's gateway
request_id_header: x-id # short
listeners:
  - { name: public, address: 127.0.0.1, port: 8080 } # the front door

upstreams: []
services: []
routes:
  # What everybody asks for
  - name: home
    match:
      path: { type: exact, value: / }
      methods: [GET, HEAD]
    action:
      type: respond
      status: 200
      body: |
        several
        lines
  # Nobody asks for this
  - name: old
    match: { path: { type: exact, value: /old } }
    action: { type: respond, status: 410 }
  - name: last
    match:
      path: { type: prefix, value: /last }
    # said twice
    action: { type: respond, status: 200 }
gateway:
  name: shop
`;

function normal(text: string): DocumentInput {
  const { input, issues } = readDocument(text);
  assert.deepEqual(issues, []);
  assert.ok(input !== undefined, text);
  return normalDocument(input);
}

function patched(text: string, change: (before: Json) => Json): string {
  const before = normal(text);
  const after = change(before);
  const result = atOnce(patchedTextSteps(text, before, after));
  assert.equal(toJson(normal(result)), toJson(normalDocument(after as DocumentInput)), result);
  return result;
}

const operations =
  (...patch: Json[]) =>
  (before: Json) =>
    jsonPatch(before, patch);
const merged = (patch: Json) => (before: Json) => mergePatch(before, patch);

const CASES: readonly [what: string, change: (before: Json) => Json, from: string, to: string][] = [
  ["nothing", merged({}), "", ""],
  [
    "a number, beside its comment",
    operations({ op: "replace", path: "/listeners/0/port", value: 9090 }),
    "port: 8080 } # the",
    "port: 9090 } # the",
  ],
  [
    "a text in lines",
    operations({ op: "replace", path: "/routes/0/action/body", value: "one" }),
    "body: |\n        several\n        lines\n",
    "body: one\n",
  ],
  [
    "an item and what is said of it",
    operations({ op: "remove", path: "/routes/1" }),
    "  # Nobody asks for this\n  - name: old\n    match: { path: { type: exact, value: /old } }\n    action: { type: respond, status: 410 }\n",
    "",
  ],
  [
    "a list in braces",
    operations({ op: "add", path: "/routes/0/match/methods/-", value: "PUT" }),
    "[GET, HEAD]",
    '["GET","HEAD","PUT"]',
  ],
  [
    "an item at the end",
    operations({
      op: "add",
      path: "/routes/-",
      value: {
        name: "more",
        match: { path: { type: "exact", value: "/m" } },
        action: { type: "respond", status: 204 },
      },
    }),
    "status: 200 }\ngateway",
    "status: 200 }\n  - name: more\n    match:\n      path:\n        type: exact\n        value: /m\n    action:\n      type: respond\n      status: 204\ngateway",
  ],
  [
    "an item between others",
    operations({ op: "add", path: "/routes/1", value: { name: "new" } }),
    "        lines\n",
    "        lines\n  - name: new\n",
  ],
  [
    "an empty section",
    merged({ upstreams: [{ name: "u", endpoints: [] }] }),
    "upstreams: []",
    'upstreams: [{"name":"u","endpoints":[]}]',
  ],
  [
    "a section with nothing in it",
    merged({ services: [{ name: "s", upstream: "u" }] }),
    "services: []",
    'services: [{"name":"s","upstream":"u"}]',
  ],
  [
    "a setting at the root",
    merged({ gateway: { request_id_header: "x-trace" } }),
    "header: x-id #",
    "header: x-trace #",
  ],
  ["a setting below gateway", merged({ gateway: { name: "other shop" } }), "name: shop", 'name: "other shop"'],
  [
    "a setting that is new",
    merged({ gateway: { trusted_proxies: ["10.0.0.0/8"] } }),
    "  name: shop\n",
    "  name: shop\n  trusted_proxies:\n    - 10.0.0.0/8\n",
  ],
  ["a member", operations({ op: "remove", path: "/routes/0/match/methods" }), "      methods: [GET, HEAD]\n", ""],
  ["all settings", merged({ gateway: null }), "request_id_header: x-id # short\n", ""],
  [
    "a new section",
    merged({ consumers: [{ name: "c" }] }),
    "  name: shop\n",
    "  name: shop\nconsumers:\n  - name: c\n",
  ],
  [
    "the last item",
    operations({ op: "remove", path: "/listeners/0" }),
    "  - { name: public, address: 127.0.0.1, port: 8080 } #",
    "  [] #",
  ],
];

for (const [what, change, from, to] of CASES) {
  void test(`a patch changes what it is about and leaves the rest of the text alone: ${what}`, () => {
    const before = normal(TEXT);
    const text = atOnce(patchedTextSteps(TEXT, before, change(before as unknown as Json)));
    const expected = TEXT.replace(from, to);
    assert.equal(text, what === "all settings" ? expected.replace("gateway:\n  name: shop\n", "") : expected);
  });
}

void test("line ends of Windows, and a patch of thousands of places, at once", () => {
  const crlf = TEXT.replaceAll("\n", "\r\n");
  const one = patched(crlf, operations({ op: "replace", path: "/listeners/0/port", value: 9090 }));
  assert.equal(one, crlf.replace("8080", "9090"));
  patched(
    crlf,
    operations({ op: "add", path: "/routes/0/match/host", value: "a.test" }, { op: "remove", path: "/routes/1" }),
  );
  const lines = Array.from({ length: 5000 }, (_, at) => `  - name: p${at} # ${at}\n`).join("");
  const all = merged({ policies: Array.from({ length: 5000 }, (_, at) => ({ name: `q${at}` })) });
  assert.ok(patched(`policies:\n${lines}`, all) === `policies:\n${lines.replaceAll("name: p", "name: q")}`);
});

void test("JSON stays JSON, and a text that cannot be changed in place is written anew", () => {
  const json = toJson(normal(TEXT));
  assert.deepEqual(normal(patched(json, merged({ gateway: { name: "x" } }))).gateway?.name, "x");
  const aliased =
    "routes:\n  - &one { name: a, match: { path: &p { type: exact, value: / } }, action: &act { type: respond, status: 200 } }\n  - { name: b, match: { path: *p }, action: *act }\n";
  const text = patched(aliased, operations({ op: "replace", path: "/routes/0/action/status", value: 201 }));
  assert.match(text, /^routes:\n {2}- name: a/);
  assert.equal(normal(text).routes?.[1]?.action.type, "respond");
});

void test("a text without a line break at its end, and one in braces", () => {
  assert.equal(
    patched("gateway:\n  name: x", merged({ gateway: { request_id_header: "y" } })),
    "gateway:\n  name: x\n  request_id_header: y",
  );
  assert.equal(
    patched("{ gateway: { name: x } }", merged({ gateway: { name: "y" } })),
    '{\n  "gateway": {\n    "name": "y"\n  }\n}\n',
  );
});

void test("whatever a document becomes, its new text says it", () => {
  const words = fc.constantFrom("a", "b", "c", "yes", "0x10", "- x", "a: b", "two\nlines\n", "# no comment", "");
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ maxDepth: 4 }, words, fc.integer(), fc.boolean(), fc.constant(null), tie("list"), tie("map")),
    list: fc.array(tie("any"), { maxLength: 4 }),
    map: fc.dictionary(words, tie("any"), { maxKeys: 4 }),
  }));
  const document = fc.record(
    {
      routes: value.list,
      services: value.list,
      gateway: fc.record({ name: value.any, via: value.any, trusted_proxies: value.list }),
      admin: value.map,
    },
    { requiredKeys: [] },
  );
  const layout = fc.record({
    indentSeq: fc.boolean(),
    collectionStyle: fc.constantFrom("any", "block"),
    indent: fc.constantFrom(2, 4),
  } as const);
  fc.assert(
    fc.property(document, document, layout, (before, after, options) => {
      const text = stringify(before, { ...options, lineWidth: 0, aliasDuplicateObjects: false });
      const start = normalDocument(before as DocumentInput);
      const result = atOnce(patchedTextSteps(text, start, after));
      const found: unknown = parse(result, { intAsBigInt: true });
      assert.equal(toJson(normalDocument(found as DocumentInput)), toJson(normalDocument(after as DocumentInput)));
    }),
    { numRuns: 1000 },
  );
});

void test("sections of which every line is commented out keep their comments, whatever else changes", () => {
  const text = `${TEXT}webhooks:\n#  - url: http://127.0.0.1/\n#    events: [breaker_opened]\n# none yet\npolicies:\n`;
  assert.equal(patched(text, merged({ gateway: { name: "other" } })), text.replace("name: shop", "name: other"));
  const listed = patched(text, merged({ policies: [{ name: "p" }] }));
  assert.equal(listed, text.replace("policies:\n", 'policies: [{"name":"p"}]\n'));
});
