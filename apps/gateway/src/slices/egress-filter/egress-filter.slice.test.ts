import assert from "node:assert/strict";
import { test } from "node:test";
import type { SsrfFilter } from "@headworks/gateway-contract";
import { startRawServer } from "@headworks/testkit";
import { EgressDialer } from "#egress/egress-dialer.ts";
import { documentWith, issuesOf, publish } from "../../../test/egress/documents.ts";
import { logLines } from "../../../test/egress/log-lines.ts";
import { createEgressFilter } from "./egress-filter.slice.ts";

const logged = logLines();
const slice = createEgressFilter(new EgressDialer({ log: logged.log }));

const cases: [name: string, filter: SsrfFilter | undefined, issues: string[]][] = [
  ["no filter", undefined, []],
  ["a filter with ranges", { deny: ["10.0.0.0/8", "::1", "fd00::/8"], allow: ["10.1.0.0/16"] }, []],
  ["a filter without deny", {}, ["ssrf_deny_required deny"]],
  ["a filter that says it is on, without deny", { enabled: true, allow: ["10.0.0.0/8"] }, ["ssrf_deny_required deny"]],
  ["a filter that denies nothing", { deny: [] }, ["ssrf_deny_required deny"]],
  ["a filter that is off, without deny", { enabled: false }, []],
  ["a range that is none", { deny: ["10.0.0.0/8", "10.0.0.0/33"] }, ["bad_cidr deny.1"]],
  ["a name as a range", { deny: ["localhost"] }, ["bad_cidr deny.0"]],
  ["shorthand as a range", { deny: ["10/8"] }, ["bad_cidr deny.0"]],
  ["a bad range in allow", { deny: ["::/0"], allow: ["x"] }, ["bad_cidr allow.0"]],
  ["a bad range in the older spelling", { deny: ["::/0"], allowlist: ["1.2.3.4/x"] }, ["bad_cidr allowlist.0"]],
  ["a bad range in a filter that is off", { enabled: false, deny: ["x"] }, ["bad_cidr deny.0"]],
  ["both spellings of allow", { deny: ["::/0"], allow: [], allowlist: [] }, ["duplicate_setting allowlist"]],
];
for (const [name, filter, expected] of cases) {
  test(`${name}: ${expected.length === 0 ? "no issue" : expected.join()}`, () => {
    const document = documentWith({ gateway: filter === undefined ? {} : { ssrf_filter: filter } });
    const places = expected.map((each) => each.replace(" ", " gateway.ssrf_filter."));
    assert.deepEqual(issuesOf(slice, document).codes, places);
  });
}

test("egress rules 1 and 2: a published filter applies to the next connection and is removed with the next generation", async () => {
  await using server = await startRawServer(() => undefined);
  const dialer = new EgressDialer({ log: logged.log });
  const filter = createEgressFilter(dialer);
  const dial = async (): Promise<string> =>
    await dialer
      .dial({ host: "127.0.0.1", port: server.port, isSecure: false }, "webhook", AbortSignal.timeout(5000))
      .then(
        (socket) => {
          socket.destroy();
          return "connected";
        },
        (error: unknown) => (error instanceof Error && "code" in error ? String(error.code) : "?"),
      );
  const outcomes = [await dial()];
  for (const block of [
    { deny: ["127.0.0.0/8"] },
    { enabled: false, deny: ["127.0.0.0/8"] },
    { deny: ["127.0.0.0/8"] },
    undefined,
  ]) {
    publish(filter, documentWith({ gateway: block === undefined ? {} : { ssrf_filter: block } }), logged.log);
    outcomes.push(await dial());
  }
  assert.deepEqual(outcomes, ["connected", "ssrf_denied", "connected", "ssrf_denied", "connected"]);
});

test("dns_timeout_ms bounds the lookup", async () => {
  const dialer = new EgressDialer({ log: logged.log, lookup: async () => await new Promise(() => undefined) });
  publish(createEgressFilter(dialer), documentWith({ gateway: { egress: { dns_timeout_ms: 30 } } }), logged.log);
  await assert.rejects(
    dialer.dial({ host: "h.test", port: 1, isSecure: false }, "webhook", AbortSignal.timeout(9000)),
    {
      code: "dns_timeout",
    },
  );
});
