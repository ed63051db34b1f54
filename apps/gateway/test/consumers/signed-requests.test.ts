import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import {
  http2Client,
  type Origin,
  rawClient,
  readResponse,
  startOrigin,
  temporaryDirectory,
  waitUntil,
} from "@headworks/testkit";
import type { Clock } from "#slice.ts";
import { serving, startGateway, type TestGateway } from "../gateway-rig.ts";
import { assertNotLogged, OPEN_AND_CLOSED, seenValues } from "./consumer-rig.ts";

const NOW_S = 1_780_000_000;
const SECRET = "signing-secret-1";

/** What is signed; the parts after `path` have the values a client would give them. */
interface Signing {
  readonly method?: string;
  readonly path: string;
  readonly body?: string;
  readonly keyId?: string;
  readonly secret?: string;
  readonly timestamp?: string;
  readonly nonce?: string;
  readonly digest?: string;
}

let nonces = 0;
const freshNonce = (): string => `nonce-${String((nonces += 1)).padStart(12, "0")}`;

/** The fields of a signed request, made here by the letter of the scheme. */
function signed(signing: Signing): string[] {
  const { method = "GET", path, body = "", keyId = "key-1", secret = SECRET } = signing;
  const { timestamp = String(NOW_S), nonce = freshNonce() } = signing;
  const digest = signing.digest ?? createHash("sha256").update(body).digest("hex");
  const [rawPath = "", query = ""] = path.split("?");
  const canonical = `gateway-hmac-v1\n${keyId}\n${method}\n${rawPath}\n${query}\n${timestamp}\n${nonce}\n${digest}`;
  return [
    `X-Gateway-Key-Id: ${keyId}`,
    `X-Gateway-Timestamp: ${timestamp}`,
    `X-Gateway-Nonce: ${nonce}`,
    `X-Gateway-Body-Sha256: ${digest}`,
    `X-Gateway-Signature: ${createHmac("sha256", secret).update(canonical).digest("hex")}`,
  ];
}

const without = (fields: readonly string[], name: string): string[] =>
  fields.filter((field) => !field.startsWith(`X-Gateway-${name}:`));
const replaced = (fields: readonly string[], name: string, value: string): string[] => [
  ...without(fields, name),
  `X-Gateway-${name}: ${value}`,
];

function clockAt(nowS: number): Clock & { nowMs: number } {
  return {
    nowMs: nowS * 1000,
    now(): number {
      return this.nowMs;
    },
    monotonic: () => performance.now(),
  };
}

/** An origin that keeps the bodies of the requests that were complete. */
async function bodyKeeper(): Promise<Origin & { readonly bodies: string[] }> {
  const bodies: string[] = [];
  const origin = await startOrigin({
    handler: (request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("error", () => undefined);
      request.on("end", () => {
        bodies.push(Buffer.concat(pieces).toString());
        response.end("ok");
      });
    },
  });
  return Object.assign(origin, { bodies });
}

const documentOf = (port: number, more: Partial<DocumentInput> = {}): DocumentInput => ({
  ...serving("api", [port]),
  routes: OPEN_AND_CLOSED,
  consumers: [
    { name: "acme", credentials: [{ type: "hmac", key_id: "key-1", secret: "${SIGNING}" }] },
    { name: "zoo", credentials: [{ type: "hmac", key_id: "key-2", secret: "signing-secret-2" }] },
  ],
  ...more,
});

const options = { environment: { SIGNING: SECRET }, clock: clockAt(NOW_S) };

test("authentication of a signed request", async (t) => {
  await using origin = await bodyKeeper();
  await using gateway = await startGateway(documentOf(origin.port), options);
  const path = "/closed/%61%2fb?x=%41&y";
  const once = signed({ path });
  const cases: readonly [title: string, fields: readonly string[], status: number, consumer?: string][] = [
    ["a good signature is its consumer's", once, 200, "acme"],
    ["the same request a second time is refused", once, 401],
    [
      "another's signature is another consumer's",
      signed({ path, keyId: "key-2", secret: "signing-secret-2" }),
      200,
      "zoo",
    ],
    [
      "a nonce may be another key's, too",
      signed({ path, keyId: "key-2", secret: "signing-secret-2", nonce: "nonce-nonce-nonce" }),
      200,
      "zoo",
    ],
    ["as long as it is not the same key's", signed({ path, nonce: "nonce-nonce-nonce" }), 200, "acme"],
    [
      "a nonce is used once, whatever is signed with it",
      signed({ path, nonce: "nonce-nonce-nonce", timestamp: String(NOW_S - 1) }),
      401,
    ],
    ["the secret must be the key's", signed({ path, secret: "signing-secret-2" }), 401],
    ["an unknown key id is refused", signed({ path, keyId: "key-3" }), 401],
    ["a name of the object prototype is no key id", signed({ path, keyId: "__proto__" }), 401],
    ["another method is another request", signed({ path, method: "POST" }), 401],
    ["another spelling of the path is another request", signed({ path: "/closed/%61%2Fb?x=%41&y" }), 401],
    ["another spelling of the query is another request", signed({ path: "/closed/%61%2fb?x=A&y" }), 401],
    ["a request without the query is another request", signed({ path: "/closed/%61%2fb" }), 401],
    ["the path is signed as it was sent, not as routes see it", signed({ path: "/closed/a%2fb?x=%41&y" }), 401],
    ["a clock may be five minutes behind", signed({ path, timestamp: String(NOW_S - 300) }), 200, "acme"],
    ["and five minutes ahead", signed({ path, timestamp: String(NOW_S + 300) }), 200, "acme"],
    ["not more behind", signed({ path, timestamp: String(NOW_S - 301) }), 401],
    ["nor ahead", signed({ path, timestamp: String(NOW_S + 301) }), 401],
    ["a time in milliseconds is another time", signed({ path, timestamp: String(NOW_S * 1000) }), 401],
    ["a time has digits only", signed({ path, timestamp: `+${NOW_S}` }), 401],
    ["a time is not written with a point", signed({ path, timestamp: `${NOW_S}.0` }), 401],
    ["a short nonce is refused", signed({ path, nonce: "fifteen-letters" }), 401],
    ["a long nonce is refused", signed({ path, nonce: "n".repeat(257) }), 401],
    ["the longest nonce is good", signed({ path, nonce: "n".repeat(256) }), 200, "acme"],
    ["a body that is not there has its digest, too", signed({ path, body: "x" }), 401],
    ["a digest is lower-case", signed({ path, digest: createHash("sha256").digest("hex").toUpperCase() }), 401],
    ...["Key-Id", "Timestamp", "Nonce", "Body-Sha256", "Signature"].flatMap(
      (name): [string, readonly string[], number][] => [
        [`${name} must be there`, without(signed({ path }), name), 401],
        [`${name} must be there once`, [...signed({ path }), `x-gateway-${name}: x`], 401],
        [`${name} must not be empty`, replaced(signed({ path }), name, ""), 401],
      ],
    ),
    [
      "a signature in upper case is refused",
      signed({ path }).map((field, at) =>
        at === 4 ? field.replace(/[0-9a-f]{64}$/, (hex) => hex.toUpperCase()) : field,
      ),
      401,
    ],
    ["a signature of zeros is refused", replaced(signed({ path }), "Signature", "0".repeat(64)), 401],
    ["a cut signature is refused", replaced(signed({ path }), "Signature", "00"), 401],
  ];
  for (const [title, fields, status, consumer] of cases) {
    await t.test(title, async () => {
      const seen = origin.requests.length;
      const response = await gateway.send({ path, fields });
      assert.equal(response.status, status);
      if (status === 401) {
        assert.equal(response.header("www-authenticate"), 'Gateway-HMAC-SHA256 realm="gateway"');
        assert.equal(origin.requests.length, seen, "the upstream never sees it");
        return;
      }
      const request = origin.requests.at(-1);
      assert.deepEqual(seenValues(request, "x-consumer-name"), [consumer]);
      for (const name of ["key-id", "timestamp", "nonce", "body-sha256", "signature"]) {
        assert.deepEqual(seenValues(request, `x-gateway-${name}`), [], name);
      }
    });
  }
  assert.equal(
    (await gateway.send({ path: "/open", fields: ["X-Gateway-Trace: 1"] })).status,
    200,
    "other fields are free",
  );
  assertNotLogged(gateway, ["signing-secret"]);
});

test("a nonce is remembered for twice the window, over a reload", async () => {
  await using origin = await bodyKeeper();
  const clock = clockAt(NOW_S);
  let elapsedMs = 0;
  const moved: Clock = { now: () => clock.nowMs, monotonic: () => elapsedMs };
  const document = documentOf(origin.port, { gateway: { hmac_auth: { max_clock_skew_secs: 10 } } });
  await using gateway = await startGateway(document, { ...options, clock: moved });
  const pass = (seconds: number): void => {
    clock.nowMs += seconds * 1000;
    elapsedMs += seconds * 1000;
  };
  const early = { path: "/open", fields: signed({ path: "/open", timestamp: String(NOW_S + 10) }) };
  assert.equal((await gateway.send(early)).status, 200);
  pass(19);
  await gateway.reload({ ...document, policies: [] });
  assert.equal((await gateway.send(early)).status, 401, "its timestamp is still good, its nonce is not");
  pass(1);
  assert.equal(
    (await gateway.send({ path: "/open", fields: signed({ path: "/open", timestamp: String(NOW_S + 9) }) })).status,
    401,
  );
  pass(1);
  assert.equal((await gateway.send(early)).status, 401, "now its timestamp is not");
});

test("the body of a signed request is held against its digest while it streams", async (t) => {
  await using origin = await bodyKeeper();
  const unbuffered = serving("api", [origin.port], { request_buffer_bytes: 0 });
  await using gateway = await startGateway(documentOf(origin.port, unbuffered), options);
  const post = async (path: string, signedBody: string, sentBody: string, more: readonly string[] = []) =>
    await gateway.send({
      method: "POST",
      path,
      body: sentBody,
      fields: [...signed({ method: "POST", path, body: signedBody }), ...more],
    });
  const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
  const large = "0123456789abcdef".repeat(40_000);

  await t.test("a good body arrives whole", async () => {
    assert.equal((await post("/closed", "body", "body")).status, 200);
    assert.equal((await post("/closed", large, large)).status, 200);
    assert.equal((await post("/closed", "chunks", chunked("chunks"), ["Transfer-Encoding: chunked"])).status, 200);
    assert.equal(
      (await post("/closed", "", chunked("").replace(/^0\r\n\r\n/, ""), ["Transfer-Encoding: chunked"])).status,
      200,
    );
    assert.deepEqual(origin.bodies.splice(0), ["body", large, "chunks", ""]);
  });

  for (const [title, signedBody, sentBody, more] of [
    ["another body", "body", "BODY", []],
    ["a longer body", "body", "body!", []],
    ["one byte", "b", "B", []],
    ["a large body whose last byte is another", large, `${large.slice(0, -1)}!`, []],
    ["another body in chunks", "body", chunked("BODY"), ["Transfer-Encoding: chunked"]],
    ["a body where none was signed", "", "body", []],
  ] as const) {
    await t.test(`${title} is refused, and never complete at the upstream`, async () => {
      const response = await post("/closed", signedBody, sentBody, more);
      assert.equal(response.status, 401);
      const { error } = JSON.parse(response.body.toString()) as { error: { code: string } };
      assert.equal(error.code, "unauthorized");
      assert.equal((await gateway.send({ path: "/open" })).status, 200);
      assert.deepEqual(origin.bodies.splice(0), [""], "only the request that came after it");
    });
  }

  await t.test("each mismatch is told in the log, without the body", () => {
    const lines = gateway.log.filter(({ code }) => code === "signature_body_mismatch");
    assert.equal(lines.length, 6);
    assert.deepEqual([lines[0]?.["consumer"], lines[0]?.["route"]], ["acme", "closed"]);
    assertNotLogged(gateway, ["0123456789abcdef", "signing-secret"]);
  });

  await t.test("the upstream has what came while the rest is still to come", async () => {
    const fields = signed({ method: "POST", path: "/open", body: "first second" });
    await using client = await rawClient(gateway.port());
    await client.write(
      ["POST /open HTTP/1.1", "Host: gateway.test", "Content-Length: 12", ...fields].join("\r\n") + "\r\n\r\n",
    );
    const before = origin.requests.length;
    await client.write("first");
    await waitUntil(() => origin.requests.length > before);
    await client.write(" second");
    assert.equal((await readResponse(client, "POST")).status, 200);
    assert.deepEqual(origin.bodies.splice(0), ["first second"]);
  });
});

test("the same holds over HTTP/2: key, signature and body", async () => {
  await using origin = await bodyKeeper();
  const document = documentOf(origin.port);
  const consumers = [
    ...(document.consumers ?? []),
    { name: "keyed", credentials: [{ type: "api_key" as const, key: "good" }] },
  ];
  await using gateway = await startGateway({ ...document, consumers }, options);
  await using client = await http2Client(gateway.port());
  const path = "/closed?x";
  const headersOf = (body: string): Record<string, string> =>
    Object.fromEntries(signed({ method: "POST", path, body }).map((field) => field.split(": ") as [string, string]));
  const post = { ":method": "POST", ":path": path };
  assert.equal((await client.fetch({ ...post, ...headersOf("body") }, "body")).status, 200);
  assert.equal((await client.fetch({ ...post, ...headersOf("body") }, "BODY")).status, 401);
  assert.equal((await client.fetch({ ...post, ...headersOf("x".repeat(200_000)) }, "x".repeat(200_000))).status, 200);
  assert.equal((await client.fetch({ ...post, ...headersOf("body"), "content-length": "4" }, "bodY")).status, 401);
  const twice = { ":path": path, "x-api-key": ["good", "good"] };
  assert.equal((await client.fetch(twice)).status, 401, "several fields of one name are several lines");
  assert.equal((await client.fetch({ ":path": path, "x-api-key": "good", "x-consumer-name": "admin" })).status, 200);
  assert.deepEqual(seenValues(origin.requests.at(-1), "x-consumer-name"), ["keyed"]);
  assert.deepEqual(origin.bodies, ["body", "x".repeat(200_000), ""]);
});

test("a refused body is refused whether or not the upstream may be tried again", async () => {
  await using origin = await bodyKeeper();
  const retries = { attempts: 2, retry_post: true, buffer_max_bytes: 1000 };
  await using gateway = await startGateway(
    { ...documentOf(origin.port), ...serving("api", [origin.port], { retries }) },
    options,
  );
  await rejected(gateway);
  assert.deepEqual(origin.bodies, []);
});

async function rejected(gateway: TestGateway): Promise<void> {
  const fields = signed({ method: "POST", path: "/open", body: "signed" });
  const response = await gateway.send({ method: "POST", path: "/open", body: "forged", fields });
  assert.equal(response.status, 401);
}

test("a key before it and a certificate behind it: a signature is second to fields that come first", async () => {
  await using origin = await bodyKeeper();
  const document = documentOf(origin.port);
  const consumers = [
    ...(document.consumers ?? []),
    { name: "keyed", credentials: [{ type: "api_key" as const, key: "good" }] },
  ];
  await using gateway = await startGateway({ ...document, consumers }, options);
  const bad = replaced(signed({ path: "/open" }), "Signature", "0".repeat(64));
  assert.equal((await gateway.send({ path: "/open", fields: ["X-API-Key: good", ...bad] })).status, 200);
  assert.deepEqual(seenValues(origin.requests.at(-1), "x-consumer-name"), ["keyed"]);
  assert.deepEqual(seenValues(origin.requests.at(-1), "x-gateway-signature"), [], "not verified, so not passed on");
  assert.equal(
    (await gateway.send({ path: "/open", fields: ["X-API-Key: bad", ...signed({ path: "/open" })] })).status,
    401,
  );
});

test("a signed request counts once its head is good: a body that is another one has cost a unit, a bad signature has not", async () => {
  await using origin = await bodyKeeper();
  await using directory = await temporaryDirectory();
  const document = documentOf(origin.port, {
    consumers: [
      {
        name: "acme",
        credentials: [{ type: "hmac", key_id: "key-1", secret: "${SIGNING}" }],
        quotas: { daily_requests: 9n },
      },
    ],
  });
  const environment = { ...options.environment, GATEWAY_STATE_DB: directory.file("state.db") };
  await using gateway = await startGateway(document, { ...options, environment });
  const used = async (): Promise<string | undefined> => {
    const metrics = (await gateway.send({ path: "/metrics" })).body.toString();
    return /^gateway_quota_used\{.*"daily"\} (\d+)$/m.exec(metrics)?.[1];
  };
  const post = async (signing: Partial<Signing>): Promise<number> => {
    const fields = signed({ method: "POST", path: "/closed", body: "body", ...signing });
    return (await gateway.send({ method: "POST", path: "/closed", body: "body", fields })).status;
  };
  assert.deepEqual([await post({}), await used()], [200, "1"]);
  assert.deepEqual([await post({ secret: "no" }), await used()], [401, "1"]);
  assert.deepEqual([await post({ body: "BODY" }), await used()], [401, "2"]);
});
