import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHarEntry } from "./from-entry.ts";
import { readHarEntry } from "./read-entry.ts";

/** A request whose form is given only as a list of parts. */
function formOf(params: readonly object[], mimeType: string, headers: readonly object[] = []) {
  const request = { method: "POST", url: "https://a.test/", headers, postData: { mimeType, params } };
  const reading = readHarEntry({ startedDateTime: "2026-01-02T03:04:05Z", request });
  assert.ok(reading.ok);
  const { fields, body } = fromHarEntry(reading.entry).request;
  const { leftOut } = reading;
  return {
    ...(leftOut.length > 0 && { leftOut }),
    fields,
    text: Buffer.from(body?.bytes ?? []).toString(),
    isTruncated: body?.isTruncated,
    ...(body?.missingParts && { missingParts: body.missingParts }),
  };
}

test("a multipart form that is given as a list of parts becomes the body that they make", () => {
  const params = [
    { name: "a", value: "1é" },
    { name: 'f"\r\n', fileName: "x.txt", contentType: "text/plain", value: "line\r\n" },
  ];
  const type = "multipart/form-data; boundary=xx";
  const text =
    '--xx\r\nContent-Disposition: form-data; name="a"\r\n\r\n1é\r\n--xx\r\nContent-Disposition: form-data; name="f%22%0D%0A"; filename="x.txt"\r\nContent-Type: text/plain\r\n\r\nline\r\n\r\n--xx--\r\n';
  const expected = { fields: ["Content-Type", type], text, isTruncated: false };
  assert.deepEqual(formOf(params, type), expected);
  const header = { name: "Content-Type", value: type };
  assert.deepEqual(formOf(params, "multipart/form-data", [header]), expected, "the field knows the boundary");
});

test("a form whose boundary is missing, or stands in a part, gets one that the Content-Type names", () => {
  const cases = [
    ["multipart/form-data", "1", "----WeirFormBoundary"],
    ["multipart/form-data; boundary=xx; a=b", "1\r\n--xx--", "----WeirFormBoundary"],
    ['multipart/form-data; a=b; boundary="x"', "--x\r\n--\r\n------WeirFormBoundary", "----WeirFormBoundary1"],
  ] as const;
  for (const [type, value, boundary] of cases) {
    const { fields, text } = formOf([{ name: "a", value }], type, [{ name: "content-type", value: type }]);
    const rest = type.includes("a=b") ? "; a=b" : "";
    assert.deepEqual(fields, ["content-type", `multipart/form-data${rest}; boundary=${boundary}`]);
    const part = 'Content-Disposition: form-data; name="a"';
    assert.equal(text, `--${boundary}\r\n${part}\r\n\r\n${value}\r\n--${boundary}--\r\n`);
  }
});

test("a form without the content of its file is rebuilt as a body that is not whole", () => {
  const file = { name: "f", fileName: "x.bin", contentType: "application/octet-stream" };
  const { text, isTruncated, missingParts } = formOf(
    [file, { name: "g", value: "" }, { name: "h" }],
    "multipart/form-data; boundary=B",
  );
  assert.match(text, /filename="x.bin"\r\nContent-Type: application\/octet-stream\r\n\r\n\r\n--B\r\n/);
  assert.equal(isTruncated, true);
  assert.deepEqual(missingParts, ['"f" ("x.bin")', '"h"']);
});

test("parameters that no body can be made of are named", () => {
  const params = [{ name: "a", value: "1 2" }, { value: "no name" }];
  const unnamed = "left out for want of a name: `request.postData.params[1]`";
  const unmade = (type: string): string =>
    `\`request.postData.params\` is left out: no body of ${type} can be made of parameters`;
  const field = (value: string) => [{ name: "Content-Type", value }];
  for (const [mimeType, headers, type] of [
    ["multipart/mixed; boundary=B", [], "multipart/mixed; boundary=B"],
    ["", field("application/json"), "application/json"],
    ["", [], "a type that is not named"],
  ] as const) {
    const { text, leftOut } = formOf(params, mimeType, headers);
    assert.deepEqual([text, leftOut], ["", [unnamed, unmade(type)]]);
  }
  assert.deepEqual(formOf([], "text/plain").leftOut, undefined);
  const encoded = formOf(params, "", field("application/x-www-form-urlencoded; charset=utf-8"));
  assert.deepEqual([encoded.text, encoded.leftOut], ["a=1+2", [unnamed]], "the field knows the type");
  const form = formOf(params, "", field("multipart/form-data; boundary=B"));
  assert.match(form.text, /^--B\r\n[^]*\r\n--B--\r\n$/);
  assert.deepEqual(form.leftOut, [unnamed]);
});
