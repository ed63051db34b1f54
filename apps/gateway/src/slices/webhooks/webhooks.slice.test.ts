import assert from "node:assert/strict";
import { test } from "node:test";
import { EVENT_KINDS, type WebhookTarget } from "@headworks/gateway-contract";
import { EgressDialer } from "#egress/egress-dialer.ts";
import { documentWith, issuesOf, publish, realClock } from "../../../test/egress/documents.ts";
import { logLines } from "../../../test/egress/log-lines.ts";
import { response, ok, startReceiver } from "../../../test/webhooks/receiver.ts";
import { SAMPLE, target as sampleTarget, webhookRig } from "../../../test/webhooks/webhook-rig.ts";
import { createWebhooks, signatureFields } from "./webhooks.slice.ts";

const logged = logLines();
const slice = createWebhooks({
  dialer: new EgressDialer({ log: logged.log }),
  clock: realClock,
  log: logged.log,
});

const SECRETS = {
  "${KEY}": "good",
  "${LINES}": "a\r\nX-B: sneaked",
  "${SIGN}": `whsec_${"A".repeat(32)}`,
  "${BYTES}": "ÿ",
};
const target = (more: Partial<WebhookTarget>): WebhookTarget => ({
  url: "http://h.test/hook",
  events: ["breaker_opened"],
  ...more,
});

const cases: [name: string, targets: Partial<WebhookTarget>[], issues: string[]][] = [
  ["a plain target", [{}], []],
  ["all seven kinds", [{ events: [...EVENT_KINDS] }], []],
  ["an https URL with port, path and query", [{ url: "https://h.test:8443/a/b?c=d" }], []],
  ["a relative URL", [{ url: "/hook" }], ["bad_url 0.url"]],
  ["another scheme", [{ url: "ftp://h.test/" }], ["bad_url 0.url"]],
  ["a URL with a password", [{ url: "http://me:sneaked@h.test/" }], ["bad_url 0.url"]],
  ["no events", [{ events: [] }], ["empty_events 0.events"]],
  ["an unknown kind", [{ events: ["breaker_opened", "nope"] }], ["unknown_event_kind 0.events.1"]],
  ["the reserved kind quota_near_limit", [{ events: ["quota_near_limit"] }], ["unknown_event_kind 0.events.0"]],
  ["a kind in other letter case", [{ events: ["Breaker_Opened"] }], ["unknown_event_kind 0.events.0"]],
  ["the same URL twice", [{}, {}], ["duplicate_url 1.url"]],
  ["the same URL three times", [{}, {}, {}], ["duplicate_url 1.url", "duplicate_url 2.url"]],
  ["the same URL in another spelling", [{}, { url: "HTTP://H.test:80/hook#x" }], ["duplicate_url 1.url"]],
  ["URLs that differ in their query", [{}, { url: "http://h.test/hook?2" }], []],
  ["URLs that differ in their scheme", [{}, { url: "https://h.test/hook" }], []],
  ["URLs that differ in a last slash", [{}, { url: "http://h.test/hook/" }], []],
  ["a cap below the base", [{ backoff_base_ms: 200, backoff_cap_ms: 199 }], ["out_of_range 0.backoff_cap_ms"]],
  ["a cap that is the base", [{ backoff_base_ms: 200, backoff_cap_ms: 200 }], []],
  ["a base above the default cap", [{ backoff_base_ms: 1001 }], ["out_of_range 0.backoff_cap_ms"]],
  ["a cap below the default base", [{ backoff_cap_ms: 99 }], ["out_of_range 0.backoff_cap_ms"]],
  ["headers with and without secrets", [{ headers: { "X-Key": "${KEY}", "X-Other": "plain" } }], []],
  ["a secret that is not there, reported by who resolves it", [{ headers: { "X-Key": "${NO}" } }], []],
  ...["Host", "Content-Length", "Transfer-Encoding", "Connection", "Content-Type", "User-Agent", "host", "UPGRADE"].map(
    (name): [string, Partial<WebhookTarget>[], string[]] => [
      `the header ${name}`,
      [{ headers: { [name]: "x" } }],
      [`bad_header 0.headers.${name}`],
    ],
  ),
  ["a header name with a space", [{ headers: { "X Key": "x" } }], ["bad_header 0.headers.X Key"]],
  ["a header name with a line end", [{ headers: { "X\r\nY": "x" } }], ["bad_header 0.headers.X\r\nY"]],
  ["an empty header name", [{ headers: { "": "x" } }], ["bad_header 0.headers."]],
  ["a header twice in different case", [{ headers: { "X-A": "1", "x-a": "2" } }], ["bad_header 0.headers.x-a"]],
  ["a value with a line end", [{ headers: { "X-Bad": "a\nsneaked" } }], ["bad_header 0.headers.X-Bad"]],
  ["a resolved value with a line end", [{ headers: { "X-Bad": "${LINES}" } }], ["bad_header 0.headers.X-Bad"]],
  ["a value with white space around", [{ headers: { "X-Bad": " a" } }], ["bad_header 0.headers.X-Bad"]],
  ["a value beyond Latin-1", [{ headers: { "X-Bad": "€" } }], ["bad_header 0.headers.X-Bad"]],
  ["a value within Latin-1", [{ headers: { "X-Good": "${BYTES}" } }], []],
  ["a good signing secret", [{ signing: { secret: "${SIGN}" } }], []],
  ["a signing secret that is no base64", [{ signing: { secret: "sneaked secret" } }], ["bad_value 0.signing.secret"]],
  [
    "a header that the signature sets",
    [{ signing: { secret: "${SIGN}" }, headers: { "Webhook-Id": "1" } }],
    ["bad_header 0.headers.Webhook-Id"],
  ],
  ["the same header without signing", [{ headers: { "Webhook-Id": "1" } }], []],
  [
    "several mistakes at once, all reported",
    [{ url: "nope", events: [], headers: { Host: "x" }, backoff_cap_ms: 0 }],
    ["bad_url 0.url", "empty_events 0.events", "bad_header 0.headers.Host", "out_of_range 0.backoff_cap_ms"],
  ],
];

for (const [name, targets, expected] of cases) {
  test(`${name}: ${expected.length === 0 ? "no issue" : expected.map((each) => each.split(" ")[0]).join(", ")}`, () => {
    const { codes, messages } = issuesOf(slice, documentWith({ webhooks: targets.map(target) }), SECRETS);
    assert.deepEqual(
      codes,
      expected.map((each) => each.replace(" ", " webhooks.")),
    );
    assert.doesNotMatch(messages.join(), /sneaked/, "no value is repeated");
  });
}

test("a target gets only the kinds it lists, and a new generation changes the targets", () => {
  const document = documentWith({
    webhooks: [target({}), target({ url: "http://h.test/2", events: ["breaker_opened", "breaker_closed"] })],
  });
  publish(slice, document, logged.log);
  const urls = (kind: (typeof EVENT_KINDS)[number]): string[] => slice.recipientsFor(kind).map(({ url }) => url);
  assert.deepEqual(urls("breaker_opened"), ["http://h.test/hook", "http://h.test/2"]);
  assert.deepEqual(urls("breaker_closed"), ["http://h.test/2"]);
  assert.deepEqual(urls("config_published"), []);
  slice.compile?.(documentWith({}), {
    generation: 9,
    clock: realClock,
    log: logged.log,
    secret: () => assert.fail("nothing to resolve"),
    readFile: () => assert.fail("nothing to read"),
  });
  assert.equal(urls("breaker_opened").length, 2, "what is compiled is not published");
  publish(slice, documentWith({}), logged.log);
  assert.deepEqual(urls("breaker_opened"), []);
});

test("signing adds the three headers of Standard Webhooks, the same id and a time of its own for each attempt", async () => {
  await using receiver = await startReceiver(response(503, "Retry-After: 1"), ok);
  await using rig = webhookRig();
  rig.publish([sampleTarget(receiver.url, { signing: { secret: "${SIGN}" } })], SECRETS);
  assert.equal(await rig.deliver(), "delivered");
  const key = Buffer.from("A".repeat(32), "base64");
  const times = receiver.requests.map((request) => Number(request.header("webhook-timestamp")));
  for (const [index, request] of receiver.requests.entries()) {
    const [, id, , , , signature] = signatureFields(key, SAMPLE.id, SAMPLE.envelope, (times[index] ?? 0) * 1000);
    assert.equal(request.header("webhook-id"), id);
    assert.equal(request.header("webhook-signature"), signature);
  }
  assert.equal(times.length, 2);
  assert.ok((times[1] ?? 0) > (times[0] ?? 0));
});

test("what is known of targets names them without their query, with their last outcome", async () => {
  await using receiver = await startReceiver(response(404));
  await using rig = webhookRig();
  rig.publish([sampleTarget(`${receiver.url}?token=querysecret`)]);
  assert.deepEqual(rig.webhooks.targets(), [{ url: receiver.url, events: ["breaker_half_open"], last: undefined }]);
  await rig.deliver();
  const [status] = rig.webhooks.targets();
  assert.deepEqual(
    {
      outcome: status?.last?.outcome,
      status: status?.last?.status,
      attempts: status?.last?.attempts,
      id: status?.last?.id,
    },
    { outcome: "failed", status: 404, attempts: 1, id: SAMPLE.id },
  );
});

test("of a target that left the configuration during a delivery nothing is remembered", async () => {
  const released = Promise.withResolvers<void>();
  await using receiver = await startReceiver(async (connection) => {
    await released.promise;
    await connection.write(ok);
  });
  await using rig = webhookRig();
  rig.publish([sampleTarget(receiver.url)]);
  const underWay = rig.deliver();
  rig.publish([]);
  released.resolve();
  assert.equal(await underWay, "delivered");
  rig.publish([sampleTarget(receiver.url)]);
  assert.equal(rig.webhooks.targets()[0]?.last, undefined);
});

test("an event can be sent to one target by hand; an unknown target gets nothing", async () => {
  await using receiver = await startReceiver(ok);
  await using rig = webhookRig();
  const own = `${receiver.url}/own`;
  const events = ["config_published"];
  rig.publish(["?1", "?2", "/own?token=x"].map((more) => sampleTarget(receiver.url + more, { events })));
  assert.equal((await rig.webhooks.send(`${receiver.url}?2`, SAMPLE))?.outcome, "delivered");
  assert.equal((await rig.webhooks.send(own, SAMPLE))?.outcome, "delivered");
  assert.equal(await rig.webhooks.send(receiver.url, SAMPLE), undefined, "two targets are shown like this");
  assert.equal(await rig.webhooks.send("http://h.test/", SAMPLE), undefined);
  const lines = receiver.requests.map(({ requestLine }) => requestLine);
  assert.deepEqual(lines, ["POST /hook?2 HTTP/1.1", "POST /hook/own?token=x HTTP/1.1"]);
});

test("an interruption ends what is under way and is no outcome", async () => {
  await using receiver = await startReceiver(async (connection) => void (await connection.closed));
  await using rig = webhookRig();
  rig.publish([sampleTarget(receiver.url, { timeout_ms: 60_000 })]);
  const underWay = rig.deliver();
  const second = rig.deliver();
  rig.webhooks.interrupt();
  assert.deepEqual([await underWay, await second, await rig.deliver()], ["interrupted", "interrupted", "interrupted"]);
  assert.deepEqual(rig.counts(), []);
});
