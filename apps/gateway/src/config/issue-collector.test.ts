import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import fc from "fast-check";
import type { Issue } from "@headworks/gateway-contract";
import { FakeClock } from "@headworks/testkit";
import { generationRig } from "../../test/config/generation-rig.ts";
import { checkDocument, checkingSteps, errorCount, freshFindings } from "./check-document.ts";
import { readDocument, readingSteps } from "./read-document.ts";

const parts = { checks: [], clock: new FakeClock(), environment: {} };
const check = (document: object): Issue[] =>
  checkDocument(readDocument(JSON.stringify(document)), parts, freshFindings({}));
const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const route = (at: number, more: object = {}): object => ({
  name: `r${at}`,
  match: { path: { type: "prefix", value: `/${at}` } },
  action: { type: "respond", status: 200 },
  ...more,
});
const ofCode = (issues: readonly Issue[], code: Issue["code"]): Issue[] =>
  issues.filter((issue) => issue.code === code);

test("500 errors are listed in the order of the text, and one more says how many there are", () => {
  const issues = check({ routes: times(1200, (at) => route(at, { service: "none" })) });
  const listed = ofCode(issues, "unknown_reference");
  assert.deepEqual(
    listed.map(({ path }) => path),
    times(500, (at) => `/routes/${at}/service`),
  );
  assert.deepEqual(issues.at(-1), {
    code: "more_issues",
    path: "",
    message: "There are 1200 errors; the first 500 are listed",
    severity: "error",
    count: 700,
  });
  assert.equal(issues.length, 501);
  assert.equal(errorCount(issues), 1200);
});

test("500 errors need no more", () => {
  const issues = check({ routes: times(500, (at) => route(at, { service: "none" })) });
  assert.deepEqual([issues.length, errorCount(issues), ofCode(issues, "more_issues").length], [500, 500, 0]);
});

test("warnings have a list of their own, so that they hide no error", () => {
  const issues = check({ routes: [route(0, { service: "none" })], policies: times(700, (at) => ({ name: `p${at}` })) });
  assert.equal(ofCode(issues, "unknown_reference").length, 1);
  assert.equal(ofCode(issues, "unused").length, 500);
  assert.equal(issues.at(-1)?.message, "There are 700 warnings; the first 500 are listed");
  assert.deepEqual([issues.at(-1)?.severity, errorCount(issues)], ["warning", 1]);
});

test("of a document that cannot be read whole, wrong fields are counted beyond the list too", () => {
  const issues = check({ routes: times(800, (at) => route(at, { nope: 1 })) });
  assert.deepEqual([ofCode(issues, "unknown_field").length, errorCount(issues)], [500, 800]);
  assert.equal(issues.at(-1)?.message, "There are at least 800 errors; the first 500 are listed");
});

test("an event of a rejected candidate has the true number, not that of the list", async () => {
  const { generations, events } = generationRig();
  const text = JSON.stringify({ routes: times(900, (at) => route(at, { service: "none" })) });
  const outcome = await generations.submit({ text, source: "reload" });
  assert.ok(outcome.outcome === "rejected" && outcome.issues.length === 501);
  assert.deepEqual(events, [{ kind: "config_rejected", payload: { issue_count: 900, generation: 0 } }]);
});

test("6000 wrong names beside 6000 right ones: only the first get a suggestion, within bounded time", () => {
  const startedMs = performance.now();
  const issues = check({
    upstreams: [{ name: "u", endpoints: [{ address: "h", port: 1 }] }],
    services: times(6000, (at) => ({ name: `service-of-the-department-${at}`, upstream: "u" })),
    routes: times(6000, (at) => route(at, { service: `service-of-the-departmend-${at}` })),
  });
  const listed = ofCode(issues, "unknown_reference");
  assert.match(listed[0]?.message ?? "", /Did you mean "service-of-the-department-0"\?$/);
  assert.doesNotMatch(listed[1]?.message ?? "", /Did you mean/);
  // Comparing each with each took minutes.
  assert.ok(performance.now() - startedMs < 60_000);
});

test("a mapping with 10,000 wrong keys is searched once, not for each of them", () => {
  const startedMs = performance.now();
  const headers = Object.fromEntries(times(10_000, (at) => [`bad name ${at}`, "x"]));
  const issues = check({ routes: [route(0, { match: { path: { type: "prefix", value: "/" }, headers } })] });
  assert.equal(issues[499]?.path, "/routes/0/match/headers/bad name 499");
  assert.equal(errorCount(issues), 10_000);
  assert.ok(performance.now() - startedMs < 60_000);
});

for (const [language, write, fewest] of [
  ["JSON", JSON.stringify, 12],
  ["YAML", stringify, 20],
] as const) {
  test(`a large document in ${language} is read and checked in many steps, with what one step finds`, () => {
    const text = write({ routes: times(5000, (at) => route(at, { service: "none" })) });
    const reading = readingSteps(text, ".");
    let steps = 0;
    let read = reading.next();
    for (; read.done !== true; read = reading.next()) steps += 1;
    assert.ok(steps >= fewest, `${steps} steps of reading`);
    const checking = checkingSteps(read.value, parts, freshFindings({}));
    let checked = checking.next();
    for (steps = 0; checked.done !== true; checked = checking.next()) steps += 1;
    assert.ok(steps >= 4, `${steps} steps of checking`);
    assert.deepEqual(checked.value, checkDocument(readDocument(text), parts, freshFindings({})));
  });
}

test("members of a section that another section is an alias of are read for both, as what they are there", () => {
  const text =
    "upstreams: &all [{name: a, endpoints: [{address: h, port: 1}]}]\npolicies: *all\nservices: [{name: a, upstream: a}]\n";
  const issues = checkDocument(readDocument(text), parts, freshFindings({}));
  assert.deepEqual(
    ofCode(issues, "unknown_field").map(({ path }) => path),
    ["/policies/0/endpoints"],
  );
});

const ADDRESSES = ["0.0.0.0", "::", "127.0.0.1", "::1", "[::1]", "localhost", "10.0.0.1", "0:0:0:0:0:0:0:1"] as const;
const CANONICAL: Readonly<Record<string, string>> = { "[::1]": "::1", "0:0:0:0:0:0:0:1": "::1" };
/** Whether two listeners cannot have the same port, by the rule itself. */
function collide(a: string, b: string): boolean {
  const covers = (all: string, one: string): boolean => all === "::" || (all === "0.0.0.0" && !one.includes(":"));
  return (CANONICAL[a] ?? a) === (CANONICAL[b] ?? b) || covers(a, b) || covers(b, a);
}

test("listeners collide exactly where two of them would want the same address, whatever stands between them", () => {
  const listener = fc.record({ address: fc.constantFrom(...ADDRESSES), port: fc.constantFrom(0, 80, 81) });
  fc.assert(
    fc.property(fc.array(listener, { maxLength: 8 }), (wanted) => {
      const issues = check({
        listeners: wanted.map((one, at) => ({ name: `l${at}`, ...one })),
        allow_empty_routes: true,
      });
      const expected = wanted.flatMap((one, at) =>
        one.port !== 0 && wanted.slice(0, at).some((two) => two.port === one.port && collide(one.address, two.address))
          ? [`/listeners/${at}/port`]
          : [],
      );
      assert.deepEqual(
        ofCode(issues, "address_collision").map(({ path }) => path),
        expected,
      );
    }),
  );
});
