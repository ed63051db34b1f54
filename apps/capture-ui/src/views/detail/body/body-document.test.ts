import assert from "node:assert/strict";
import { test } from "node:test";
import { BodyDocument } from "./body-document.ts";
import type { BodyProgress } from "./body-document.ts";

/** Serves a body by range and records the requests. */
function serve(body: Uint8Array<ArrayBuffer>, converted?: Uint8Array<ArrayBuffer>) {
  const asked: string[] = [];
  const fetchBody: typeof fetch = (input, init) => {
    const bytes = (input as string).includes("charset") ? (converted ?? body) : body;
    const range = new Headers(init?.headers).get("range") ?? "";
    asked.push(`${input as string} ${range}`);
    const [, start = "0", end = "0"] = /bytes=(\d+)-(\d+)/u.exec(range) ?? [];
    const slice = bytes.slice(Number(start), Number(end) + 1);
    return Promise.resolve(
      new Response(slice, {
        status: 206,
        headers: { "content-range": `bytes ${start}-${Number(start) + slice.length - 1}/${bytes.length}` },
      }),
    );
  };
  return { asked, fetchBody };
}

const encode = (text: string) => new TextEncoder().encode(text);

async function open(body: Uint8Array<ArrayBuffer>, contentType: string | null, fetchBody = serve(body).fetchBody) {
  const reports: BodyProgress[] = [];
  const document = new BodyDocument(
    { url: "/body?decoded=true", contentType },
    (progress) => reports.push(progress),
    fetchBody,
  );
  await document.open();
  const last = reports.at(-1);
  assert.ok(last);
  return { document, last, reports };
}

test("a JSON body is formatted and read by rows", async () => {
  const { document, last } = await open(encode('{"a":[1,2]}'), "application/json");
  assert.deepEqual([last.kind, last.done, last.error, last.problem], ["json", true, null, null]);
  assert.deepEqual(
    document.pretty?.window(0, 9).map((row) => row.text),
    ["{", '  "a": [', "    1,", "    2", "  ]", "}"],
  );
  assert.equal(document.raw.text(100), '{"a":[1,2]}');
});

test("a large body is fetched in two ranges, and its beginning is shown before the rest has loaded", async () => {
  const body = encode(`[${'{"id":1,"text":"abc"},'.repeat(100_000)}0]`);
  const { asked, fetchBody } = serve(body);
  const { last, reports } = await open(body, "application/json", fetchBody);
  assert.deepEqual(asked, ["/body?decoded=true bytes=0-262143", "/body?decoded=true bytes=262144-134217727"]);
  const first = reports[0];
  assert.ok(first !== undefined && !first.done && first.prettyRows > 1000);
  assert.ok(first.loadedBytes < 50_000, `${first.loadedBytes} bytes were laid out before anything was shown`);
  assert.equal(last.loadedBytes, body.length);
  assert.equal(last.totalBytes, body.length);
});

test("a binary body is fetched beyond its beginning only on request", async () => {
  const body = new Uint8Array(400_000);
  const { asked, fetchBody } = serve(body);
  const { document, last } = await open(body, "application/octet-stream", fetchBody);
  assert.equal(last.kind, "binary");
  assert.equal(asked.length, 1);
  await document.loadRest();
  await document.loadRest();
  assert.equal(asked.length, 2);
  assert.equal(document.raw.bytes.length, body.length);
});

test("a body is loaded completely, however early the rest is requested", async () => {
  const body = new Uint8Array(400_000);
  const { asked, fetchBody } = serve(body);
  const document = new BodyDocument(
    { url: "/b?", contentType: "application/octet-stream" },
    () => undefined,
    fetchBody,
  );
  await Promise.all([document.open(), document.loadRest()]);
  assert.equal(asked.length, 2);
  assert.equal(document.raw.bytes.length, body.length);
});

test("a text in another charset is fetched again, converted", async () => {
  const body = Uint8Array.from([0x63, 0x61, 0x66, 0xe9]);
  const { asked, fetchBody } = serve(body, encode("café"));
  const { document } = await open(body, "text/plain; charset=iso-8859-1", fetchBody);
  assert.equal(document.raw.text(100), "café");
  assert.match(asked[1] ?? "", /charset=utf-8/u);
});

test("HTML, CSS and scripts are formatted; plain text is not", async () => {
  assert.ok((await open(encode("<ul><li>1</li></ul>"), "text/html")).document.pretty);
  assert.ok((await open(encode("a{b:c}"), "text/css")).document.pretty);
  assert.equal((await open(encode("plain"), "text/plain")).document.pretty, null);
});

test("a rejected body request reports the service's reason", async () => {
  const refuse: typeof fetch = () =>
    Promise.resolve(Response.json({ error: "The body cannot be decoded as gzip", code: "BAD" }, { status: 400 }));
  const { last } = await open(encode(""), null, refuse);
  assert.equal(last.error, "The body cannot be decoded as gzip");
  assert.equal(last.done, true);
});

test("after a broken connection the received part is kept and the failure reported", async () => {
  const body = encode(`[${"1,".repeat(300_000)}1]`);
  const { fetchBody } = serve(body);
  let calls = 0;
  const breaking: typeof fetch = (input, init) =>
    ++calls === 1 ? fetchBody(input, init) : Promise.reject(new TypeError("network lost"));
  const { document, last } = await open(body, "application/json", breaking);
  assert.equal(last.error, "network lost");
  assert.ok((document.pretty?.rows ?? 0) > 1000);
});

test("a service that ignores ranges still yields the whole body", async () => {
  const whole: typeof fetch = () => Promise.resolve(new Response('{"a":1}'));
  const { last, document } = await open(encode(""), "application/json", whole);
  assert.equal(last.done, true);
  assert.equal(document.pretty?.rows, 3);
});

test("a closed document sends no more progress", async () => {
  const reports: BodyProgress[] = [];
  const never: typeof fetch = (_, init) =>
    new Promise((_resolve, reject) => {
      init?.signal?.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
    });
  const document = new BodyDocument({ url: "/x?", contentType: null }, (progress) => reports.push(progress), never);
  const opened = document.open();
  document.close();
  await opened;
  assert.deepEqual(reports, []);
});

test("wrapping splits all rows again, also later ones", async () => {
  const { document, reports } = await open(encode('[{"id":1},{"id":2}]'), "application/json");
  document.wrapAt(8);
  const last = reports.at(-1);
  assert.deepEqual([last?.rawRows, last?.prettyRows, last?.layout], [3, 10, 1]);
  document.wrapAt(8);
  assert.equal(reports.at(-1), last);
});

test("a damaged content coding is reported, with or without decoded bytes", async () => {
  const some: typeof fetch = () => Promise.resolve(new Response('{"a":', { headers: { "x-body-partial": "true" } }));
  const first = await open(encode(""), "application/json", some);
  assert.deepEqual([first.last.isBroken, first.last.loadedBytes, first.last.error], [true, 5, null]);
  const nothing: typeof fetch = () => Promise.resolve(new Response("", { headers: { "x-body-partial": "true" } }));
  const second = await open(encode(""), "application/json", nothing);
  assert.deepEqual(
    [second.last.isBroken, second.last.totalBytes, second.last.done, second.last.error],
    [true, 0, true, null],
  );
});
