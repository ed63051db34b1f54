import assert from "node:assert/strict";
import { test } from "node:test";
import { MIMEType } from "node:util";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { isJson, isTextual, isXml, parseMediaType, resourceType, resourceTypes, type ResourceHints } from "./index.ts";

const parsed: [text: string, essence: string | undefined, parameters?: [string, string][]][] = [
  ["text/html", "text/html"],
  ["Text/HTML; Charset=UTF-8", "text/html", [["charset", "UTF-8"]]],
  [
    ' text/html ;charset="utf\\-8" ; x="a;b,c"',
    "text/html",
    [
      ["charset", "utf-8"],
      ["x", "a;b,c"],
    ],
  ],
  [
    "text/html;;=;a;b=1;c d=2;b=3",
    "text/html",
    [
      ["b", "1"],
      ["b", "3"],
    ],
  ],
  ['text/html; a="open', "text/html", [["a", "open"]]],
  ["text/html, application/json", "text/html"],
  ["application/problem+json", "application/problem+json"],
  ["", undefined],
  ["text", undefined],
  ["text/", undefined],
  ["/html", undefined],
  ["text/html/x", undefined],
  ["te xt/html", undefined],
  ["ünï/cödé", undefined],
  [";charset=utf-8", undefined],
];

for (const [text, essence, parameters] of parsed) {
  test(`the Content-Type "${text}" is ${essence ?? "nothing"}`, () => {
    const mediaType = parseMediaType(text);
    assert.equal(mediaType?.essence, essence);
    if (essence !== undefined) assert.deepEqual(mediaType?.parameters, parameters ?? []);
  });
}

test("suffix and charset are taken out", () => {
  const mediaType = parseMediaType("image/svg+xml; charset=ISO-8859-1");
  assert.deepEqual([mediaType?.suffix, mediaType?.charset], ["xml", "iso-8859-1"]);
});

test("what the platform writes is read back", () => {
  const token = fc.stringMatching(/^[a-z0-9!#$&^_.+-]{1,8}$/);
  const value = fc.string({ unit: fc.constantFrom(...'aZ0 ,;="\\/\t'.split("")) });
  fc.assert(
    fc.property(token, token, fc.dictionary(token, value, { maxKeys: 4 }), (type, subtype, parameters) => {
      const written = new MIMEType(`${type}/${subtype}`);
      for (const [name, each] of Object.entries(parameters)) written.params.set(name, each);
      const read = parseMediaType(written.toString());
      assert.equal(read?.essence, `${type}/${subtype}`);
      assert.deepEqual(new Map(read?.parameters), new Map(written.params));
    }),
  );
});

test("any text is answered", () => {
  fc.assert(fc.property(fc.string({ unit: anyCharacter }), (text) => void resourceType(text, text)));
});

const kinds: [text: string, isText: boolean, json: boolean, xml: boolean][] = [
  ["text/plain", true, false, false],
  ["application/json", true, true, false],
  ["application/vnd.api+json; charset=utf-8", true, true, false],
  ["application/x-ndjson", true, true, false],
  ["application/xml", true, false, true],
  ["application/atom+xml", true, false, true],
  ["application/javascript", true, false, false],
  ["application/x-javascript", true, false, false],
  ["application/x-www-form-urlencoded", true, false, false],
  ["application/graphql", true, false, false],
  ["application/vnd.apple.mpegurl", true, false, false],
  ["image/svg+xml", true, false, true],
  ["application/octet-stream", false, false, false],
  ["application/pdf", false, false, false],
  ["image/png", false, false, false],
  ["multipart/form-data; boundary=x", false, false, false],
  ["application/grpc", false, false, false],
  ["garbage", false, false, false],
];

for (const [text, isText, json, xml] of kinds) {
  test(`"${text}" is${isText ? "" : " not"} for reading`, () => {
    assert.deepEqual([isTextual(text), isJson(text), isXml(text)], [isText, json, xml]);
    assert.equal(isTextual(parseMediaType(text)), isText);
  });
}

const resources: [contentType: string | undefined, path: string, type: string, hints?: ResourceHints][] = [
  ["text/html; charset=utf-8", "/", "document"],
  ["text/html", "/missing.png", "document"],
  ["application/xhtml+xml", "/", "document"],
  ["text/javascript", "/", "script"],
  ["application/x-javascript", "/", "script"],
  ["text/css", "/", "stylesheet"],
  ["image/svg+xml", "/", "image"],
  ["image/png", "/", "image"],
  ["font/woff2", "/", "font"],
  ["application/font-woff", "/", "font"],
  ["application/x-font-ttf", "/", "font"],
  ["video/mp4", "/", "media"],
  ["application/vnd.apple.mpegurl", "/", "media"],
  ["application/dash+xml", "/", "media"],
  ["application/problem+json", "/", "json"],
  ["application/rss+xml", "/", "xml"],
  ["text/plain", "/a.js", "text"],
  ["application/x-www-form-urlencoded", "/", "form"],
  ["multipart/form-data; boundary=x", "/", "form"],
  ["text/event-stream", "/", "event-stream"],
  ["application/grpc", "/", "grpc"],
  ["application/grpc+proto", "/", "grpc"],
  ["application/grpc-web-text", "/", "grpc"],
  ["application/grpcish", "/", "binary"],
  ["application/wasm", "/", "wasm"],
  ["application/octet-stream", "/", "binary"],
  ["application/octet-stream", "/f.woff2?v=1.css", "font"],
  ["application/zip", "/", "binary"],
  [undefined, "/app.JS?x=1", "script"],
  [undefined, "/a.b/c", "other"],
  [undefined, "/#/a.css", "other"],
  [undefined, "/", "script", { destination: "worker" }],
  ["garbage", "/x.css", "stylesheet"],
  ["chemical/x-pdb", "/", "other"],
  ["text/html", "/", "websocket", { isWebSocket: true }],
];

for (const [contentType, path, type, hints] of resources) {
  test(`${contentType ?? "no type"} at ${path} is classified ${type}`, () => {
    assert.equal(resourceType(contentType, path, hints), type);
    assert.ok(resourceTypes.some((each) => each === type));
  });
}
