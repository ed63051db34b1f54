import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readDecision } from "./decision.ts";

const bodyOf = (text: string): Buffer => Buffer.from(text);

test("opa: nothing but a plain true, alone or as allow, ever permits", () => {
  let permitted = 0;
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.string(),
        fc.jsonValue().map((result) => JSON.stringify({ result })),
        fc.constant('{"result":true}'),
      ),
      fc.integer({ min: 100, max: 999 }),
      (text, status) => {
        const decision = readDecision("opa", { kind: "response", status, fields: [], body: bodyOf(text) });
        if (decision.kind !== "allow") return;
        permitted += 1;
        assert.equal(status, 200);
        assert.match(text, /true/);
      },
    ),
    { numRuns: 3000, examples: [['{"result":true}', 200]] },
  );
  assert.ok(permitted > 0, "a permission occurs");
});

test("http: 2xx permits, 401 and 403 refuse, everything else is an error", () => {
  for (let status = 100; status < 1000; status += 1) {
    const { kind } = readDecision("http", { kind: "response", status, fields: [], body: Buffer.alloc(0) });
    const expected = status >= 200 && status < 300 ? "allow" : status === 401 || status === 403 ? "deny" : "error";
    assert.equal(kind, expected, String(status));
  }
});
