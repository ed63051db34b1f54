import assert from "node:assert/strict";
import { test } from "node:test";
import type { Callout, Policy } from "@headworks/gateway-contract";
import { EgressDialer } from "#egress/egress-dialer.ts";
import { documentWith, issuesOf, realClock } from "../../../test/egress/documents.ts";
import { logLines } from "../../../test/egress/log-lines.ts";
import { createCallouts } from "./callouts.slice.ts";

const slice = createCallouts({
  dialer: new EgressDialer({ log: logLines().log }),
  clock: realClock,
  log: logLines().log,
});

const cases: [name: string, callout: Partial<Callout>, issues: string[]][] = [
  ["a plain callout", {}, []],
  ["a header with a secret that is there", { headers: { "X-Token": "${TOKEN}" } }, []],
  ["a header with a secret that is not there, reported by who resolves it", { headers: { "X-Token": "${NO}" } }, []],
  ["a URL with a password", { url: "http://a:b@h.test/" }, ["bad_url url"]],
  ["a URL with white space", { url: "http://h.test/a b" }, ["bad_url url"]],
  ["a header that frames the request", { headers: { "Content-Length": "1" } }, ["bad_header headers.Content-Length"]],
  ["a header that callouts set", { headers: { accept: "x" } }, ["bad_header headers.accept"]],
  ["a header whose name is none", { headers: { "a b": "x" } }, ["bad_header headers.a b"]],
  ["a header twice", { headers: { "X-A": "1", "x-a": "2" } }, ["bad_header headers.x-a"]],
  ["a resolved value with a line end", { headers: { "X-Bad": "${LINES}" } }, ["bad_header headers.X-Bad"]],
];

for (const [name, callout, expected] of cases) {
  test(`${name} has ${expected.length === 0 ? "no issue" : `the issue ${expected.join()}`}`, () => {
    const policy: Policy = { name: "decide", callout: { type: "opa", url: "http://h.test/v1/data/x", ...callout } };
    const document = documentWith({ policies: [{ name: "plain" }, policy] });
    const { codes, messages } = issuesOf(slice, document, { "${TOKEN}": "t", "${LINES}": "a\r\nX-B: sneaked" });
    assert.deepEqual(
      codes,
      expected.map((each) => each.replace(" ", " policies.1.callout.")),
    );
    assert.doesNotMatch(messages.join(), /sneaked/);
  });
}
