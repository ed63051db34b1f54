import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deprecation } from "@headworks/gateway-contract";
import type { CheckScope } from "#slice.ts";
import { decorated, decoratorOf, documentOf, issueNotes, routeWith } from "../../../test/routing/requests.ts";
import { deprecation } from "./deprecation.slice.ts";

const path = { type: "prefix", value: "/v1" } as const;
const since = "Thu, 01 Jan 2026 00:00:00 GMT";
const sunset = "Thu, 31 Dec 2026 23:59:59 GMT";
const uri = "https://docs.test/v1?a=b#c";
/** The middle of 2026. */
const now = Date.UTC(2026, 6, 1);

function decorate(block: Deprecation, fields: string[] = []): string[] {
  return decorated(decoratorOf(deprecation, routeWith("r", { path }, { deprecation: block })), fields, "upstream");
}

test("deprecation rule 1 and 2: Deprecation is @ and Unix seconds, Sunset the date verbatim, Link the uri", () => {
  assert.deepEqual(decorate({ since, sunset, uri }), [
    "Deprecation",
    "@1767225600",
    "Sunset",
    sunset,
    "Link",
    `<${uri}>; rel="deprecation"`,
  ]);
});

test("deprecation rule 1: what the block leaves out is not sent", () => {
  assert.deepEqual(decorate({ since }), ["Deprecation", "@1767225600"]);
  assert.deepEqual(decorate({ sunset }), ["Sunset", sunset]);
});

test("deprecation rule 1: a since of 1970 is @0", () => {
  assert.deepEqual(decorate({ since: "Thu, 01 Jan 1970 00:00:00 GMT" }), ["Deprecation", "@0"]);
});

test("deprecation rule 3: values of the upstream are replaced, all lines in any letter case", () => {
  const fields = ["deprecation", "@1", "A", "1", "SUNSET", "x", "Deprecation", "@2"];
  assert.deepEqual(decorate({ since, sunset }, fields), ["A", "1", "Deprecation", "@1767225600", "Sunset", sunset]);
  assert.deepEqual(decorate({ sunset }, ["Deprecation", "@1"]), ["Sunset", sunset]);
});

test("deprecation rule 3: Link is appended after any upstream links, which stay", () => {
  const fields = ["Link", "</a>; rel=next", "A", "1", "link", "</b>; rel=prev"];
  assert.deepEqual(decorate({ since, uri }, fields), [
    ...fields,
    "Deprecation",
    "@1767225600",
    "Link",
    `<${uri}>; rel="deprecation"`,
  ]);
});

test("deprecation rule 3: a route without the block lets the upstream's values pass", () => {
  assert.equal(decoratorOf(deprecation, routeWith("r", { path })), undefined);
});

test("deprecation rule 4: short-circuit responses are not decorated", () => {
  const decorator = decoratorOf(deprecation, routeWith("r", { path }, { deprecation: { since } }));
  assert.equal(decorator?.on, "action-responses");
});

test("fields of one response do not leak into the next", () => {
  const decorator = decoratorOf(deprecation, routeWith("r", { path }, { deprecation: { since } }));
  decorated(decorator, [], "action").push("X", "1");
  assert.deepEqual(decorated(decorator, [], "action"), ["Deprecation", "@1767225600"]);
});

function check(block: Deprecation, nowMs: number): { readonly notes: string[]; readonly messages: string[] } {
  const scope: CheckScope = {
    clock: { now: () => nowMs, monotonic: () => 0 },
    secret: () => undefined,
    readFile: () => undefined,
  };
  const { report, notes, messages } = issueNotes();
  const routes = [routeWith("fine", { path }), routeWith("r", { path }, { deprecation: block })];
  deprecation.check?.(documentOf(routes), report, scope);
  for (const note of notes) assert.ok(note.includes(" routes.1.deprecation"), note);
  return { notes: notes.map((note) => note.replace("routes.1.deprecation", "").replace(" .", " ").trim()), messages };
}

const BLOCKS: readonly (readonly [string, Deprecation, readonly string[]])[] = [
  ["all three", { since, sunset, uri }, []],
  ["since alone, in the past", { since }, []],
  ["since alone, in the future", { since: "Fri, 01 Jan 2027 00:00:00 GMT" }, []],
  ["sunset alone", { sunset }, []],
  ["sunset equal to since", { since: sunset, sunset }, []],
  ["uri in capitals", { since, uri: "HTTPS://Docs.Test/V1" }, []],
  ["uri without a path", { since, uri: "http://docs.test" }, []],
  ["neither since nor sunset", {}, ["deprecation_empty"]],
  ["only a uri", { uri }, ["deprecation_empty", "uri_without_since uri"]],
  ["uri with sunset alone", { sunset, uri }, ["uri_without_since uri"]],
  ["since as ISO 8601", { since: "2026-01-01T00:00:00Z" }, ["date_not_imf_fixdate since"]],
  ["sunset with UTC", { sunset: "Thu, 31 Dec 2026 23:59:59 UTC" }, ["date_not_imf_fixdate sunset"]],
  ["sunset without weekday", { sunset: "31 Dec 2026 23:59:59 GMT" }, ["date_not_imf_fixdate sunset"]],
  ["since of RFC 850", { since: "Thursday, 01-Jan-26 00:00:00 GMT" }, ["date_not_imf_fixdate since"]],
  ["since of asctime", { since: "Thu Jan  1 00:00:00 2026" }, ["date_not_imf_fixdate since"]],
  ["a day that does not exist", { sunset: "Tue, 29 Feb 2027 00:00:00 GMT" }, ["date_not_imf_fixdate sunset"]],
  ["a wrong weekday", { since: "Fri, 01 Jan 2026 00:00:00 GMT" }, ["date_weekday_mismatch since"]],
  [
    "two wrong dates",
    { since: "x", sunset: "Fri, 31 Dec 2026 23:59:59 GMT" },
    ["date_not_imf_fixdate since", "date_weekday_mismatch sunset"],
  ],
  ["sunset in the past", { sunset: "Tue, 30 Jun 2026 23:59:59 GMT" }, ["sunset_past sunset"]],
  ["sunset now", { sunset: "Wed, 01 Jul 2026 00:00:00 GMT" }, []],
  [
    "sunset before since",
    { since: "Thu, 31 Dec 2026 23:59:59 GMT", sunset: "Thu, 31 Dec 2026 23:59:58 GMT" },
    ["sunset_before_since sunset"],
  ],
  [
    "sunset past and before since",
    { since, sunset: "Wed, 31 Dec 2025 00:00:00 GMT" },
    ["sunset_past sunset", "sunset_before_since sunset"],
  ],
  ["since before 1970", { since: "Wed, 31 Dec 1969 23:59:59 GMT" }, ["since_before_epoch since"]],
  ...[
    "/v1",
    "docs.test/v1",
    "//docs.test/v1",
    "ftp://docs.test/",
    "http:docs.test",
    "https:///v1",
    "https://",
    "https://docs.test/a b",
    "https://docs.test/<a>",
    'https://docs.test/"a',
    "https://docs.test/\r\nSet-Cookie: a=b",
    "https://docs.test/é",
    "https://docs.test:99999/",
    "javascript:alert(1)",
    "",
  ].map((wrong) => [`uri ${JSON.stringify(wrong)}`, { since, uri: wrong }, ["bad_url uri"]] as const),
];
for (const [name, block, codes] of BLOCKS) {
  test(`deprecation rule 5: ${name} ${codes.length === 0 ? "is fine" : "is rejected"}`, () => {
    const { notes, messages } = check(block, now);
    assert.deepEqual(notes, codes);
    for (const message of messages) assert.match(message, /^[A-Za-z].*[^.]$/);
  });
}

test("deprecation rule 6: the past-sunset check looks at the clock when it is run, to the second", () => {
  const end = Date.UTC(2026, 11, 31, 23, 59, 59);
  assert.deepEqual(check({ sunset }, end).notes, []);
  assert.deepEqual(check({ sunset }, end + 1).notes, ["sunset_past sunset"]);
});

test("deprecation rule 6: a published sunset keeps being emitted after its date", () => {
  assert.deepEqual(decorate({ sunset: "Thu, 01 Jan 1998 00:00:00 GMT" }), ["Sunset", "Thu, 01 Jan 1998 00:00:00 GMT"]);
});
