import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { NO_BODY, type RawFields } from "@headworks/http1";
import { type Generation, RequestContext } from "./context.ts";
import { clientResponseFields, identityKey, upstreamRequestFields } from "./forwarded-fields.ts";
import {
  acceptableRequestId,
  mayCarryRequestId,
  newRequestId,
  RequestIdField,
  TrustedProxies,
  Via,
} from "./forwarding-rules.ts";

const CASES: readonly [string, string[], string, string[], string][] = [
  ["no trusted proxies: the peer is the client", [], "10.0.0.1", ["X-Forwarded-For", "1.2.3.4"], "10.0.0.1"],
  [
    "an untrusted peer is the client whatever its header",
    ["10.0.0.0/8"],
    "9.9.9.9",
    ["X-Forwarded-For", "1.2.3.4"],
    "9.9.9.9",
  ],
  ["a trusted peer names the client", ["10.0.0.0/8"], "10.0.0.1", ["X-Forwarded-For", "1.2.3.4"], "1.2.3.4"],
  [
    "addresses that the client prepended are ignored",
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", "6.6.6.6, 1.2.3.4"],
    "1.2.3.4",
  ],
  [
    "chains of trusted proxies are walked",
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", "1.2.3.4, 10.0.0.2"],
    "1.2.3.4",
  ],
  [
    "several lines are one list",
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", "1.2.3.4", "x-forwarded-for", "10.0.0.2"],
    "1.2.3.4",
  ],
  [
    "if all are trusted, the leftmost one is the client",
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", "10.0.0.3, 10.0.0.2"],
    "10.0.0.3",
  ],
  [
    "empty members are ignored",
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", ", 1.2.3.4,, 10.0.0.2 ,", "X-Forwarded-For", ""],
    "1.2.3.4",
  ],
  ["garbage ends the walk", ["10.0.0.0/8"], "10.0.0.1", ["X-Forwarded-For", "1.2.3.4, unknown, 10.0.0.2"], "10.0.0.2"],
  ...[
    ["9.9.9.9:51234", "9.9.9.9"],
    ["[2001:db8::9]:51234", "2001:db8::9"],
    ["[2001:db8::9]", "2001:db8::9"],
    ['"[2001:db8::9]:51234"', "2001:db8::9"],
    ['"9.9.9.9"', "9.9.9.9"],
    ["9.9.9.9:51234, 10.0.0.2:443", "9.9.9.9"],
    ["2001:db8::9", "2001:db8::9"],
    ["2001:DB8:0::0:9", "2001:db8::9"],
    ["::ffff:9.9.9.9", "9.9.9.9"],
    ["[::FFFF:909:909]:1", "9.9.9.9"],
  ].map(([members = "", client = ""]): (typeof CASES)[number] => [
    `the address is parsed from ${members}`,
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", members],
    client,
  ]),
  ...[
    "9.9.9.9:",
    "9.9.9.9:http",
    ":443",
    "[9.9.9.9]",
    "[2001:db8::9",
    "[2001:db8::9]x",
    '"9.9.9.9',
    '""',
    "_hidden",
  ].map((member): (typeof CASES)[number] => [
    `no address is parsed from ${member}`,
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", `1.2.3.4, ${member}, 10.0.0.2`],
    "10.0.0.2",
  ]),
  ["without the field it is the peer", ["10.0.0.0/8"], "10.0.0.1", [], "10.0.0.1"],
  [
    "IPv6 networks and mapped addresses count",
    ["2001:db8::/32", "::ffff:10.0.0.0/104"],
    "2001:db8::1",
    ["X-Forwarded-For", "2a00::5"],
    "2a00::5",
  ],
];
for (const [name, trusted, peer, fields, expected] of CASES) {
  test(name, () => assert.equal(new TrustedProxies(trusted).clientAddress(peer, fields), expected));
}

function requestWith(
  fields: RawFields,
  more: { trusted?: string[]; consumer?: string; secure?: boolean } = {},
): RequestContext {
  const request = new RequestContext({
    generation: { trustedProxies: new TrustedProxies(more.trusted ?? []) } as unknown as Generation,
    listener: { name: "public", isSecure: more.secure ?? false, port: 80 },
    peer: { address: "192.0.2.9", port: 1 },
    startedMs: 0,
    version: "1.1",
    method: "GET",
    target: "/",
    authority: "shop.example",
    fields,
    framing: NO_BODY,
  });
  request.requestId = "r-1";
  request.correlationId = "c-1";
  if (more.consumer !== undefined) {
    request.consumer = { name: more.consumer, groups: [], priority: undefined, credential: "api_key" };
  }
  return request;
}

/** Fields that the gateway adds to every request. */
const OWN: RawFields = [
  "X-Forwarded-For",
  "192.0.2.9",
  "X-Forwarded-Proto",
  "http",
  "X-Forwarded-Host",
  "shop.example",
  "X-Real-IP",
  "192.0.2.9",
  "X-Request-Id",
  "r-1",
  "X-Correlation-Id",
  "c-1",
];

const REQUESTS: readonly (readonly [string, RawFields, RawFields])[] = [
  [
    "ordinary fields pass with order, case and repeats kept",
    ["aCCept", "x", "B", "1", "b", "2"],
    ["aCCept", "x", "B", "1", "b", "2"],
  ],
  [
    "hop-by-hop fields are removed",
    ["Connection", "keep-alive", "Keep-Alive", "x", "Proxy-Authorization", "x", "Upgrade", "h2c", "Trailer", "x"],
    [],
  ],
  [
    "fields named by Connection are removed",
    ["Connection", "close, X-Hop", "x-hop", "1", "X-Other", "2"],
    ["X-Other", "2"],
  ],
  [
    "Connection cannot remove protected fields",
    ["Connection", "Authorization, Cookie", "Authorization", "a", "Cookie", "b"],
    ["Authorization", "a", "Cookie", "b"],
  ],
  ["framing and Host are replaced", ["Host", "x", "Content-Length", "3", "Transfer-Encoding", "chunked"], []],
  ["TE is removed", ["TE", "gzip, trailers"], []],
  [
    "consumer fields of a client are removed",
    ["X-Consumer-Name", "root", "x-consumer-groups", "g", "X_Consumer_Name", "root"],
    [],
  ],
  [
    "forwarding fields of a client are removed",
    ["X-Forwarded-For", "1.1.1.1", "Forwarded", "for=1.1.1.1", "X_Forwarded_Proto", "https", "X-Real-Ip", "1.1.1.1"],
    [],
  ],
  ["other names with underscores pass", ["my_field", "1"], ["my_field", "1"]],
];
/** Headers of many proxies about a client, none of which the gateway writes itself. */
const ABOUT_CLIENTS = [
  "X-Forwarded",
  "X-Forwarded-Prefix",
  "X-Forwarded-Ssl",
  "X-Forwarded-Scheme",
  "X-Forwarded-Server",
  "X-Forwarded-Client-Cert",
  "X-Forwarded-User",
  "X-Forwarded-Anything-New",
  "Forwarded-For",
  "X-Forward-For",
  "X-Original-URL",
  "X-Original-URI",
  "X-Original-Host",
  "X-Original-Forwarded-For",
  "X-Rewrite-URL",
  "X-Envoy-Original-Path",
  "X-Envoy-External-Address",
  "X-Envoy-Internal",
  "True-Client-IP",
  "X-Client-IP",
  "Client-IP",
  "CF-Connecting-IP",
  "CF-Connecting-IPv6",
  "CF-IPCountry",
  "CF-Visitor",
  "Fastly-Client-IP",
  "Fly-Client-IP",
  "X-Cluster-Client-IP",
  "X-ProxyUser-Ip",
  "X-Originating-IP",
  "X-Remote-Addr",
  "X-Appengine-User-IP",
  "X-Azure-ClientIP",
  "CloudFront-Viewer-Address",
  "CloudFront-Forwarded-Proto",
  "Front-End-Https",
  "X-Url-Scheme",
  "X-Scheme",
  "X-Host",
  "X-HTTP-Method-Override",
  "X-HTTP-Method",
  "X-Method-Override",
  "Client-Cert",
  "Client-Cert-Chain",
  "X-SSL-Client-Verify",
  "SSL-Client-Cert",
  "X-Client-Cert-CN",
  "X-Amzn-Mtls-Clientcert-Subject",
  "X-ARR-ClientCert",
  "X-Remote-User",
  "X-Auth-Request-Email",
];
for (const name of ABOUT_CLIENTS) {
  test(`${name} is forwarded only from trusted proxies, whatever separator replaces its dashes`, () => {
    const spellings = [name, name.toLowerCase(), name.replaceAll("-", "_"), name.replaceAll("-", ".")];
    const given = spellings.flatMap((spelling) => [spelling, "said"]);
    assert.deepEqual(upstreamRequestFields(requestWith(given)), OWN);
    assert.equal(identityKey(requestWith(given)), "");
    const trusted = upstreamRequestFields(requestWith(given, { trusted: ["192.0.2.9"] }));
    const kept = name.includes("-") ? [name, "said", name.toLowerCase(), "said"] : given;
    assert.deepEqual(trusted, [...kept, ...OWN]);
  });
}

test("headers of trusted proxies about the request are part of the cache key", () => {
  const keyOf = (...fields: string[]): string => identityKey(requestWith(fields, { trusted: ["192.0.2.9"] }));
  const keys = [keyOf(), keyOf("X-Forwarded-Prefix", "/a"), keyOf("X-Forwarded-Prefix", "/b"), keyOf("X-Scheme", "/a")];
  assert.equal(new Set(keys).size, keys.length);
  assert.equal(keyOf("x-forwarded-prefix", "/a"), keys[1]);
  for (const name of ["CF-Connecting-IP", "X-Forwarded-For", "True-Client-IP", "Accept", "X-Forwarded-Proto"]) {
    assert.equal(keyOf(name, "https"), "", name);
  }
});

test("an allowed identity header is forwarded from every client, and is part of the cache key", () => {
  const fields = ["X-HTTP-Method-Override", "PUT", "x_http_method_override", "PUT", "X-Method-Override", "PUT"];
  const request = requestWith(fields);
  Object.assign(request.generation, { requestIdField: new RequestIdField("X-Request-Id", ["x-http-method-override"]) });
  assert.deepEqual(upstreamRequestFields(request), ["X-HTTP-Method-Override", "PUT", ...OWN]);
  assert.equal(identityKey(request), "x-http-method-override:PUT\r");
});

test("X-Real-IP is the address that rules, limits and logs use", () => {
  const request = requestWith(["X-Forwarded-For", "198.51.100.7, 192.0.2.8"], { trusted: ["192.0.2.0/24"] });
  const fields = upstreamRequestFields(request);
  assert.equal(valueOf(fields, "X-Real-IP"), "198.51.100.7");
  assert.equal(valueOf(fields, "X-Forwarded-For"), "198.51.100.7, 192.0.2.8, 192.0.2.9");
});

for (const [rule, given, kept] of REQUESTS) {
  test(`towards the upstream: ${rule}`, () => {
    assert.deepEqual(upstreamRequestFields(requestWith(given)), [...kept, ...OWN]);
  });
}

test("towards an upstream of HTTP/2, TE passes if it contains trailers", () => {
  assert.equal(valueOf(upstreamRequestFields(requestWith(["TE", "gzip, trailers"]), true), "TE"), "trailers");
  assert.ok(!upstreamRequestFields(requestWith(["TE", "gzip"]), true).includes("TE"));
});

test("a trusted proxy's chain is kept and continued, in both spellings", () => {
  const fields = upstreamRequestFields(
    requestWith(["X-Forwarded-For", "", "X-Forwarded-For", "1.1.1.1", "Forwarded", "for=1.1.1.1"], {
      trusted: ["192.0.2.0/24"],
      secure: true,
    }),
  );
  assert.equal(valueOf(fields, "X-Forwarded-For"), "1.1.1.1, 192.0.2.9");
  assert.equal(valueOf(fields, "X-Forwarded-Proto"), "https");
  assert.equal(valueOf(fields, "Forwarded"), 'for=1.1.1.1, for=192.0.2.9;host="shop.example";proto=https');
});

test("scheme, host and port are taken from trusted proxies only", () => {
  const said = ["X-Forwarded-Proto", "https", "X-Forwarded-Host", "public.example", "X-Forwarded-Port", "443"];
  const names = ["X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port"];
  const passed = (fields: RawFields, trusted: string[]): unknown[] => {
    const sent = upstreamRequestFields(requestWith(fields, { trusted }));
    return names.map((name) => sent[sent.indexOf(name) + 1]);
  };
  assert.deepEqual(passed(said, ["192.0.2.0/24"]), ["https", "public.example", "443"]);
  const own = upstreamRequestFields(requestWith(said, { trusted: ["198.51.100.0/24"] }));
  assert.deepEqual([valueOf(own, "X-Forwarded-Proto"), valueOf(own, "X-Forwarded-Host")], ["http", "shop.example"]);
  assert.ok(!own.includes("X-Forwarded-Port"));
  const odd = ["X-Forwarded-Proto", "gopher", "X-Forwarded-Host", "", "X-Forwarded-Port", "many"];
  const sent = upstreamRequestFields(requestWith(odd, { trusted: ["192.0.2.0/24"] }));
  assert.deepEqual([valueOf(sent, "X-Forwarded-Proto"), valueOf(sent, "X-Forwarded-Host")], ["http", "shop.example"]);
  assert.ok(!sent.includes("X-Forwarded-Port"));
});

test("the authenticated consumer is named, and its credential fields are removed", () => {
  const request = requestWith(["X-API-Key", "secret", "Other", "1"], { consumer: "acme" });
  request.credentialFields = new Set(["x-api-key"]);
  const fields = upstreamRequestFields(request);
  assert.equal(valueOf(fields, "X-Consumer-Name"), "acme");
  assert.ok(!fields.includes("secret"));
});

const RESPONSES: readonly (readonly [string, RawFields, boolean, RawFields])[] = [
  [
    "repeated fields and their case are kept",
    ["Set-Cookie", "a", "set-cookie", "b"],
    false,
    ["Set-Cookie", "a", "set-cookie", "b"],
  ],
  ["rate limit fields of an upstream are removed", ["X-RateLimit-Limit", "1", "x-ratelimit-whatever", "2"], false, []],
  [
    "hop-by-hop fields and those named by Connection are removed",
    ["Connection", "X-Hop", "X-Hop", "1", "Keep-Alive", "x", "Proxy-Authenticate", "x"],
    false,
    [],
  ],
  ["framing is replaced", ["Content-Length", "5", "Transfer-Encoding", "chunked"], false, []],
  ["the length of an absent body is kept", ["Content-Length", "5"], true, ["Content-Length", "5"]],
  ["the upstream's request id is replaced by ours", ["X-Request-Id", "theirs"], false, []],
];
for (const [rule, given, keepLength, kept] of RESPONSES) {
  test(`towards the client: ${rule}`, () => assert.deepEqual(clientResponseFields(given, keepLength), kept));
}

test("no spelling lets a client forge identity fields", () => {
  const name = fc
    .constantFrom("x-consumer-name", "x-forwarded-for", "x-real-ip", "x-forwarded-host", "x-forwarded-proto")
    .chain((base) =>
      fc.array(fc.boolean(), { minLength: base.length, maxLength: base.length }).map((upper) =>
        base
          .split("")
          .map((sign, at) => (sign === "-" && upper[at] ? "_" : upper[at] ? sign.toUpperCase() : sign))
          .join(""),
      ),
    );
  fc.assert(
    fc.property(name, fc.boolean(), (forged, named) => {
      const given: RawFields = [forged, "forged", ...(named ? ["Connection", forged] : [])];
      const fields = upstreamRequestFields(requestWith(given, { consumer: "acme" }));
      assert.ok(!fields.includes("forged"));
      assert.equal(valueOf(fields, "X-Consumer-Name"), "acme");
      assert.equal(valueOf(fields, "X-Forwarded-For"), "192.0.2.9");
    }),
  );
});

function valueOf(fields: RawFields, name: string): string | undefined {
  const at = fields.findIndex((text, index) => index % 2 === 0 && text === name);
  return at === -1 ? undefined : fields[at + 1];
}

test("another field for the id of requests: it is replaced in both directions, and X-Request-Id becomes an ordinary field", () => {
  const field = new RequestIdField("X-Trace-Token");
  const request = requestWith([
    "X-Request-Id",
    "theirs",
    "x-trace-token",
    "forged",
    "X_Trace_Token",
    "forged",
    "A",
    "1",
  ]);
  Object.assign(request.generation, { requestIdField: field });
  const sent = upstreamRequestFields(request);
  assert.deepEqual(sent.slice(0, 4), ["X-Request-Id", "theirs", "A", "1"]);
  assert.deepEqual(sent.slice(-4), ["X-Trace-Token", "r-1", "X-Correlation-Id", "c-1"]);
  const answered = clientResponseFields(["X-TRACE-TOKEN", "theirs", "X-Request-Id", "theirs"], false, field);
  assert.deepEqual(answered, ["X-Request-Id", "theirs"]);
});

for (const [name, may] of [
  ["X-Request-Id", true],
  ["x-correlation-id", true],
  ["Request-Token", true],
  ["Host", false],
  ["connection", false],
  ["X-Forwarded-For", false],
  ["X-Consumer-Name", false],
  ["Proxy-Token", false],
  ["Content-Type", false],
  ["traceparent", false],
  ["Authorization", false],
  ["If-Match", false],
] as const) {
  test(`${name} ${may ? "may" : "cannot"} carry the request id`, () => assert.equal(mayCarryRequestId(name), may));
}

const INSTANCE = "0123456789abcdef";
const OTHER = "fedcba9876543210";

test("the pseudonym is the gateway's name and the instance; versions are those of RFC 9110 and RFC 9113", () => {
  const { requests, responses } = new Via({ name: "edge" }, INSTANCE);
  assert.deepEqual(requests, {
    "1.0": `1.0 edge-${INSTANCE}`,
    "1.1": `1.1 edge-${INSTANCE}`,
    "2": `2.0 edge-${INSTANCE}`,
  });
  assert.equal(responses, undefined, "responses have no Via by default");
});

test("either direction can be switched", () => {
  const { requests, responses } = new Via({ via: { requests: false, answers: true } }, INSTANCE);
  assert.equal(requests, undefined);
  assert.equal(responses?.["1.1"], `1.1 gateway-${INSTANCE}`);
});

const own = `1.1 gateway-${INSTANCE}`;
const cases: [name: string, fields: string[], maxPasses: number, isLoop: boolean][] = [
  ["no Via", ["Host", "a"], 1, false],
  ["another gateway", ["Via", "1.1 proxy.example, 1.0 fred (Apache)"], 1, false],
  ["another instance with the same name", ["Via", `1.1 gateway-${OTHER}`], 1, false],
  ["this instance", ["Via", own], 1, true],
  ["this instance among others", ["Via", `1.0 fred, ${own}, 2.0 cdn`], 1, true],
  ["this instance in another letter case of the field", ["vIA", own], 1, true],
  ["this instance under a name of an earlier generation", ["Via", `1.1 old-name-${INSTANCE}`], 1, true],
  ["in the second field", ["Via", "1.1 a", "X", "y", "Via", own], 1, true],
  ["once of two", ["Via", own], 2, false],
  ["twice in one field", ["Via", `${own}, ${own}`], 2, true],
  ["twice in two fields", ["Via", own, "Via", own], 2, true],
  ["this instance in another field", ["X-Via", own, "Vib", own], 1, false],
];
for (const [name, fields, maxPasses, isLoop] of cases) {
  test(`loop detection: ${name}, ${maxPasses} allowed: ${isLoop ? "a loop" : "none"}`, () => {
    assert.equal(new Via({ via: { max_passes: maxPasses } }, INSTANCE).isLoop(fields), isLoop);
  });
}

test("new ids have the documented shape and differ", () => {
  const ids = Array.from({ length: 10_000 }, newRequestId);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.match(id, /^req-[0-9a-f]{16}-[0-9a-f]{6}$/);
});

for (const [name, sent, kept] of [
  ["printable text is kept", "abc-123", true],
  ["128 characters are kept", "x".repeat(128), true],
  ["129 characters are not", "x".repeat(129), false],
  ["a space is not", "a b", false],
  ["control bytes are not", "a\tb", false],
  ["bytes beyond ASCII are not", "é", false],
  ["an empty value is not", "", false],
] as const) {
  test(`a client's request id: ${name}`, () => assert.equal(acceptableRequestId(sent), kept ? sent : undefined));
}
