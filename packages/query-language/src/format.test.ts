import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { describeQuery } from "./format.ts";
import { parseQuery } from "./parse.ts";
import { queries } from "../test/random-queries.ts";

const CASES: readonly (readonly [string, string])[] = [
  ["", "everything"],
  ["method:(POST|PUT) resp.body:order", "the method is “POST” or is “PUT” and the response body contains “order”"],
  [
    "host:*.example.com -type:image",
    "the host looks like “*.example.com” and not (the type of the response contains “image”)",
  ],
  ["status:5xx OR dur:>1s", "the status is from 500 to 599 or the duration is more than 1s"],
  ["resp.header[set-cookie]:*", "a response header named “set-cookie” is present"],
  ["json(resp,$.a):42 since:10m", "the value at $.a in the response body is “42” and it started within the last 10m"],
  ["modified:true passthrough:no", "it was modified on the way and it was not passed through unread"],
  [
    "grpc.status:!=0 grpc.status:5..7",
    "the status of the gRPC call is known and not OK and the status of the gRPC call is from NOT_FOUND to PERMISSION_DENIED",
  ],
  ["dir:in host:a ws.text:error", "the host contains “a” and a WebSocket message from the server contains “error”"],
  ["ws.text:a dir:!=in", "a WebSocket message from the client contains “a”"],
  ["host:a dir:in", "the host contains “a” and the direction of a stream's message is “in”"],
  ["status:!=200 host:!=a", "the status is known and not 200 and the host is present and not “a”"],
  [
    "a (b OR c)",
    "the URL, a header or a body contains “a” and (the URL, a header or a body contains “b” or the URL, a header or a body contains “c”)",
  ],
];

for (const [text, sentence] of CASES) {
  test(`\`${text}\` is explained`, () => {
    const result = parseQuery(text);
    assert.ok(result.ok);
    assert.equal(describeQuery(result.query), sentence);
  });
}

test("every query has an explanation", () => {
  fc.assert(fc.property(queries, (query) => assert.notEqual(describeQuery(query), "")));
});
