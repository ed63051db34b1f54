import assert from "node:assert/strict";
import { test } from "node:test";
import type { NewMockResponse } from "@headworks/capture-contract";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { responseHeadText } from "@headworks/http1";
import type { SyntheticResponse } from "#exchange/phases.ts";
import { prepareResponse } from "./prepared-response.ts";
import type { FileReading } from "./body-file.ts";
import { filledResponse } from "./mock-rule.ts";
import { sampleSubject } from "./mocks.operations.ts";
import type { TemplateRequest } from "./template.ts";

const NOW = Date.UTC(2026, 0, 2);
const subject = await sampleSubject(
  { method: "POST", url: "http://a.test/p?q=%0d%0aX-Evil:%201&u=%E2%82%AC", body: '{"a":"b\\r\\nX-Evil: 1"}' },
  "",
);

async function answered(
  response: NewMockResponse,
  file?: FileReading,
  request: TemplateRequest = subject,
): Promise<SyntheticResponse> {
  const surroundings = { nowMs: NOW, readFile: async () => file ?? assert.fail("no file was expected") };
  return await prepareResponse(filledResponse(response)).make(request, surroundings);
}

const field = ({ fields }: SyntheticResponse, name: string): string[] =>
  fields.flatMap((each, at) => (at % 2 === 0 && each.toLowerCase() === name ? [fields[at + 1] ?? ""] : []));

test("without a body, responses to HEAD and 304 have the length the rule announces, others none", async () => {
  const head = await sampleSubject({ method: "HEAD", url: "http://a.test/p" }, "");
  const headers = { "Content-Length": "1234" };
  const cases: readonly [NewMockResponse, TemplateRequest, string[]][] = [
    [{ headers }, head, ["1234"]],
    [{}, head, []],
    [{ headers: { "Content-Length": "many" } }, head, []],
    [{ headers, body: "abc" }, head, ["3"]],
    [{ headers }, subject, ["0"]],
    [{ headers, status_code: 304 }, subject, ["1234"]],
    [{ headers, status_code: 204 }, subject, []],
  ];
  for (const [response, request, length] of cases) {
    const made = await answered(response, undefined, request);
    assert.deepEqual(field(made, "content-length"), length, JSON.stringify(response));
  }
});

test("a body gets its guessed media type, unless the rule has one, and its length", async () => {
  const cases: readonly (readonly [NewMockResponse, string[], string])[] = [
    [{ body: '{"a":1}' }, ["application/json"], "7"],
    [{ body: " [1]" }, ["application/json"], "4"],
    [{ body: "{not json}" }, ["text/plain; charset=utf-8"], "10"],
    [{ body: "<!DOCTYPE html><p>" }, ["text/html; charset=utf-8"], "18"],
    [{ body: "é" }, ["text/plain; charset=utf-8"], "2"],
    [{ body_base64: "AP8=" }, ["application/octet-stream"], "2"],
    [{ body: "x", headers: { "content-type": "a/b" } }, ["a/b"], "1"],
    [
      { body: "x", headers: { "Content-Length": "99", "Transfer-Encoding": "chunked", Connection: "close" } },
      ["text/plain; charset=utf-8"],
      "1",
    ],
    [{}, [], "0"],
    [{ body: "" }, [], "0"],
  ];
  for (const [response, type, length] of cases) {
    const made = await answered(response);
    assert.deepEqual(
      [field(made, "content-type"), field(made, "content-length")],
      [type, [length]],
      JSON.stringify(response),
    );
    assert.deepEqual([field(made, "transfer-encoding"), field(made, "connection")], [[], []]);
  }
});

test("responses without content have neither body nor type, and a length only where allowed", async () => {
  for (const [status, length] of [
    [204, []],
    [304, []],
    [205, ["0"]],
  ] as const) {
    const made = await answered({ status_code: status, body: "ignored" });
    assert.equal(made.body.length, 0);
    assert.deepEqual([field(made, "content-type"), field(made, "content-length")], [[], length]);
  }
});

test("a text has no content coding, bytes and files keep theirs", async () => {
  const headers = { "Content-Encoding": "gzip" };
  assert.deepEqual(field(await answered({ headers, body: "x" }), "content-encoding"), []);
  assert.deepEqual(field(await answered({ headers, body_base64: "AA==" }), "content-encoding"), ["gzip"]);
  const file: FileReading = { ok: true, bytes: Buffer.from("z") };
  assert.deepEqual(field(await answered({ headers, body_file: "a.gz" }, file), "content-encoding"), ["gzip"]);
});

test("a file is the body, with the type of its name; an unreadable one is a 500 with the reason", async () => {
  const made = await answered({ body_file: "x/y.JSON" }, { ok: true, bytes: Buffer.from("{}") });
  assert.deepEqual([made.status, made.body.toString(), field(made, "content-type")], [200, "{}", ["application/json"]]);
  const missing = await answered({ body_file: "y" }, { ok: false, problem: "is larger than 5 bytes" });
  assert.equal(missing.status, 500);
  assert.match(missing.body.toString(), /y is larger than 5 bytes/);
  const filled = await answered(
    { body_file: "t.txt", template_enabled: true },
    { ok: true, bytes: Buffer.from("{{request.method}} {{request.body.a}}") },
  );
  assert.equal(filled.body.toString(), "POST b\r\nX-Evil: 1");
});

test("templates are rendered only when enabled, and cannot inject header fields", async () => {
  const headers = { "X-Q": "{{request.query.q}}", "X-U": "{{request.query.u}}", "X-B": "{{request.body.a}}" };
  const off = await answered({ headers, body: "{{request.method}}" });
  assert.deepEqual([off.body.toString(), field(off, "x-q")], ["{{request.method}}", ["{{request.query.q}}"]]);
  const on = await answered({ headers, body: '{"now":{{timestamp}}}', template_enabled: true });
  assert.equal(on.body.toString(), `{"now":${NOW / 1000}}`);
  assert.deepEqual(field(on, "content-type"), ["application/json"]);
  assert.deepEqual([field(on, "x-q"), field(on, "x-b")], [["X-Evil: 1"], ["b X-Evil: 1"]]);
  assert.deepEqual(field(on, "x-u"), [Buffer.from("€").toString("latin1")]);
  assert.ok(
    responseHeadText(on.status, "OK", on.fields)
      .split("\r\n")
      .every((line) => !line.startsWith("X-Evil")),
  );
});

test("a field value beyond Latin-1 is sent as UTF-8, any other unchanged, templated or not", async () => {
  for (const template of [false, true]) {
    const headers = { "X-M": ["€", "é", " a\tb "], "X-U": "{{request.query.u}}" };
    const made = await answered({ headers, template_enabled: template });
    assert.deepEqual(field(made, "x-m"), [Buffer.from("€").toString("latin1"), "é", " a\tb "]);
    assert.doesNotThrow(() => responseHeadText(made.status, "OK", made.fields));
  }
});

test("a text is sent in the charset of its Content-Type, templated or not", async () => {
  const latin = "text/plain; charset=iso-8859-1";
  const cases: readonly (readonly [string, NewMockResponse, string])[] = [
    ["static", { headers: { "content-type": latin }, body: "café" }, "636166e9"],
    [
      "a template",
      { headers: { "Content-Type": latin }, body: "é{{request.method}}", template_enabled: true },
      "e9504f5354",
    ],
    [
      "a type that is a template",
      { headers: { "Content-Type": "{{request.method}}/x; charset=latin1" }, body: "é", template_enabled: true },
      "e9",
    ],
    ["UTF-16", { headers: { "Content-Type": "text/plain; charset=utf-16be" }, body: "é" }, "00e9"],
    ["what the charset cannot say is UTF-8", { headers: { "Content-Type": latin }, body: "中" }, "e4b8ad"],
    ["no charset that is known", { headers: { "Content-Type": "text/plain; charset=x-none" }, body: "é" }, "c3a9"],
    ["bytes", { headers: { "Content-Type": latin }, body_base64: "w6k=" }, "c3a9"],
  ];
  for (const [is, response, bytes] of cases) {
    const made = await answered(response);
    assert.deepEqual([made.body.toString("hex"), field(made, "content-length")], [bytes, [`${bytes.length / 2}`]], is);
  }
  const file: FileReading = { ok: true, bytes: Buffer.from("é") };
  const made = await answered({ headers: { "Content-Type": latin }, body_file: "x", template_enabled: true }, file);
  assert.equal(made.body.toString("hex"), "c3a9", "a file");
});

test("no request value can make the head invalid", async () => {
  const response = prepareResponse(
    filledResponse({ headers: { "X-T": "a{{request.body}}b" }, template_enabled: true }),
  );
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: anyCharacter, minLength: 1 }), async (body) => {
      const own = await sampleSubject(
        { url: "http://a.test/", method: "POST", headers: { "Content-Length": "1" }, body, body_encoding: "utf8" },
        "",
      );
      const made = await response.make(own, { nowMs: NOW, readFile: () => assert.fail() });
      assert.equal(responseHeadText(200, "OK", made.fields).split("\r\n").length, 5);
    }),
    { numRuns: 50 },
  );
});

test("changing the fields of one response does not affect the next", async () => {
  const response = prepareResponse(filledResponse({ headers: { "X-A": "1" }, body: "x" }));
  const surroundings = { nowMs: NOW, readFile: () => assert.fail() };
  const first = await response.make(subject, surroundings);
  first.fields.push("X-B", "2");
  assert.deepEqual(field(await response.make(subject, surroundings), "x-b"), []);
});

test("a delay stays within its variance and is never negative", () => {
  const delay = (random: number, response: NewMockResponse) =>
    prepareResponse(filledResponse(response)).delayMs(random);
  assert.deepEqual(
    [0, 0.5, 1].map((random) => delay(random, { delay_ms: 100, delay_variance_ms: 20 })),
    [80, 100, 120],
  );
  assert.deepEqual(
    [0, 1].map((random) => delay(random, { delay_variance_ms: 20 })),
    [0, 20],
  );
  assert.equal(delay(0.3, {}), 0);
});

test("a response reports whether it needs the request body", () => {
  const needs = (response: NewMockResponse) => prepareResponse(filledResponse(response)).needsBody;
  assert.equal(needs({ body: "{{request.body.a}}" }), false);
  assert.equal(needs({ body: "{{request.body.a}}", template_enabled: true }), true);
  assert.equal(needs({ body: "{{uuid}}", template_enabled: true }), false);
  assert.equal(needs({ headers: { a: "{{request.body}}" }, template_enabled: true }), true);
  assert.equal(needs({ body_file: "x", template_enabled: true }), true);
});
