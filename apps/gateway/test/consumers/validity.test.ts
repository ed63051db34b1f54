import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import { startOrigin } from "@headworks/testkit";
import type { Clock } from "#slice.ts";
import { serving, startGateway, type TestGateway } from "../gateway-rig.ts";
import { issuesOf, OPEN_AND_CLOSED, type ConsumerInput } from "./consumer-rig.ts";

type Credential = NonNullable<ConsumerInput["credentials"]>[number];

const START_MS = Date.parse("2027-01-01T00:00:00Z");
const HOUR_MS = 3_600_000;

/** A wall clock that the test sets, by hours since the start of 2027. */
function clockAt(): { readonly clock: Clock; readonly set: (hours: number) => void } {
  let nowMs = START_MS;
  return {
    clock: { now: () => nowMs, monotonic: () => performance.now() },
    set: (hours) => (nowMs = START_MS + hours * HOUR_MS),
  };
}

const at = (hours: number): string => new Date(START_MS + hours * HOUR_MS).toISOString();

/** Fields that sign a request for `/closed` at a moment. */
function signed(keyId: string, secret: string, nowMs: number, nonce: string): string[] {
  const timestamp = String(Math.floor(nowMs / 1000));
  const digest = createHash("sha256").update("").digest("hex");
  const canonical = `gateway-hmac-v1\n${keyId}\nGET\n/closed\n\n${timestamp}\n${nonce}\n${digest}`;
  return [
    `X-Gateway-Key-Id: ${keyId}`,
    `X-Gateway-Timestamp: ${timestamp}`,
    `X-Gateway-Nonce: ${nonce}`,
    `X-Gateway-Body-Sha256: ${digest}`,
    `X-Gateway-Signature: ${createHmac("sha256", secret).update(canonical).digest("hex")}`,
  ];
}

const basic = (password: string): string[] => [
  `Authorization: Basic ${Buffer.from(`ann:${password}`).toString("base64")}`,
];

/** Two secrets of each kind: the first is good until hour 2, the second from hour 1 on. */
const OLD = { not_after: at(2) };
const NEW = { not_before: at(1) };
const CREDENTIALS: Credential[] = [
  { type: "api_key", key: "old-api-key-value", ...OLD },
  { type: "api_key", key: "new-api-key-value", ...NEW },
  { type: "basic", username: "ann", password: "old-password", ...OLD },
  { type: "basic", username: "ann", password: "new-password", ...NEW },
  { type: "hmac", key_id: "old", secret: "old-signing-secret", ...OLD },
  { type: "hmac", key_id: "new", secret: "new-signing-secret", ...NEW },
];

const PRESENTED: readonly (readonly [
  kind: string,
  fields: (which: "old" | "new", nowMs: number, nonce: string) => readonly string[],
])[] = [
  ["API keys", (which) => [`X-API-Key: ${which}-api-key-value`]],
  ["passwords of one user", (which) => basic(`${which}-password`)],
  ["signing secrets", (which, nowMs, nonce) => signed(which, `${which}-signing-secret`, nowMs, nonce)],
];

async function statusOf(gateway: TestGateway, fields: readonly string[]): Promise<number> {
  return (await gateway.send({ path: "/closed", fields })).status;
}

for (const [kind, fields] of PRESENTED) {
  test(`rotation of ${kind}: one ends and the other begins at its moment, without a reload`, async () => {
    await using origin = await startOrigin();
    const { clock, set } = clockAt();
    const document: DocumentInput = {
      ...serving("api", [origin.port]),
      routes: OPEN_AND_CLOSED,
      consumers: [{ name: "acme", credentials: CREDENTIALS }],
    };
    await using gateway = await startGateway(document, { clock });
    const moments = [
      { hours: 0, old: 200, new: 401 },
      { hours: 1 - 1 / HOUR_MS, old: 200, new: 401 },
      { hours: 1, old: 200, new: 200 },
      { hours: 2 - 1 / HOUR_MS, old: 200, new: 200 },
      { hours: 2, old: 401, new: 200 },
      { hours: 9, old: 401, new: 200 },
      // A clock that is set back makes earlier secrets valid again.
      { hours: 0, old: 200, new: 401 },
    ];
    for (const [round, moment] of moments.entries()) {
      set(moment.hours);
      for (const which of ["old", "new"] as const) {
        const nonce = `nonce-${which}-of-round-${round}`;
        const status = await statusOf(gateway, fields(which, clock.now(), nonce));
        assert.equal(status, moment[which], `${which} at hour ${moment.hours}`);
      }
    }
    assert.equal(gateway.gateway.generations.current?.number, 1);
  });
}

test("rotation: an invalid secret is refused also on public routes", async () => {
  await using origin = await startOrigin();
  const { clock, set } = clockAt();
  const consumers = [{ name: "acme", credentials: CREDENTIALS }];
  const document: DocumentInput = { ...serving("api", [origin.port]), routes: OPEN_AND_CLOSED, consumers };
  await using gateway = await startGateway(document, { clock });
  set(3);
  const { status } = await gateway.send({ path: "/open", fields: ["X-API-Key: old-api-key-value"] });
  assert.equal(status, 401);
  assert.equal(origin.requests.length, 0);
});

const WRONG: readonly (readonly [what: string, credential: object, issue: string])[] = [
  ["no moment", { not_before: "soon" }, "error bad_value"],
  ["a moment without a distance from UTC", { not_after: "2027-01-01T00:00:00" }, "error bad_value"],
  ["a day that does not exist", { not_before: "2027-13-41T00:00:00Z" }, "error bad_value"],
  ["a day that no month has", { not_before: "2027-02-30T00:00:00Z" }, "error bad_value"],
  ["a leap day of a common year", { not_after: "2127-02-29T00:00:00+01:00" }, "error bad_value"],
  ["an hour that no day has", { not_after: "2127-02-28T25:00:00Z" }, "error bad_value"],
  ["an end before its beginning", { not_before: at(2), not_after: at(1) }, "error bad_value"],
  ["an end at its beginning", { not_before: at(2), not_after: at(2) }, "error bad_value"],
  ["an end that is past", { not_after: "2020-01-01T00:00:00+02:00" }, "warning unused"],
];
for (const [what, times, issue] of WRONG) {
  test(`rotation: ${what} is reported (${issue})`, async () => {
    const issues = await issuesOf({
      ...serving("api", [1]),
      routes: OPEN_AND_CLOSED,
      consumers: [{ name: "acme", credentials: [{ type: "api_key", key: "some-api-key", ...times }] }],
      // Makes sure that the document is refused, so that warnings are told, too.
      policies: [{ name: "p" }, { name: "p" }],
    });
    const found = issues.filter(({ path }) => path.startsWith("/consumers/0/credentials/0/not_"));
    assert.deepEqual(
      found.map(({ severity, code }) => `${severity} ${code}`),
      [issue],
    );
    assert.equal(JSON.stringify(issues).includes("some-api-key"), false);
  });
}
