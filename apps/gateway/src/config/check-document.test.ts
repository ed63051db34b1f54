import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import { credentials, FakeClock, temporaryDirectory } from "@headworks/testkit";
import fc from "fast-check";
import { checkDocument, freshFindings, type DocumentCheck } from "./check-document.ts";
import { parseBind } from "./check-listeners.ts";
import { readDocument } from "./read-document.ts";
import { redactedText } from "./secrets.ts";

interface Scene {
  readonly checks?: readonly DocumentCheck[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly directory?: string;
}

/** Issues of a document as `severity code path line:column message`; what is unused is of no interest here. */
function told(text: string, { checks = [], environment = {}, directory = "/" }: Scene = {}): string[] {
  const parts = { checks, clock: new FakeClock(), environment };
  return checkDocument(readDocument(text, directory), parts, freshFindings(environment)).map(
    ({ severity, code, path, line, column, message }) =>
      `${severity === "warning" ? "warning " : ""}${code} ${path} ${line}:${column} ${message}`,
  );
}

const action = "action: {type: respond, status: 200}";
const route = `routes: [{name: r, match: {path: {type: prefix, value: /}}, ${action}}]`;
const errorsOf = (text: string, scene?: Scene): string[] =>
  told(text, scene).filter((line) => !line.startsWith("warning "));

const cases: readonly (readonly [string, string, ...string[]])[] = [
  [
    "hosts for upstreams that are none, and words of other gateways",
    "upstreams: [{name: a, upstream_host: 'http://x/', health: {}, active_health: {host: 'a b'}, endpoints: [{address: h, port: 1}]}]\nservices: [{name: s, upstream: a, upstream_host: $http_host}]",
    'bad_value /upstreams/0/upstream_host 1:38 The upstream "a" has an upstream_host that must be preserve, endpoint, or a host name or an address, with a port or without',
    "bad_value /upstreams/0/active_health/host 1:85 The host of active_health must be a host name or an address, with a port or without",
    'bad_value /services/0/upstream_host 2:50 The service "s" has an upstream_host that must be preserve, endpoint, or a host name or an address, with a port or without. Did you mean "preserve"?',
  ],
  [
    "names that TLS cannot ask for",
    "upstreams: [{name: a, protocol: https, tls: {server_name: 10.0.0.1}, endpoints: [{address: h, port: 1}]}, {name: b, protocol: https, tls: {server_name: 'a.test:443'}, endpoints: [{address: h, port: 1}]}]",
    'bad_value /upstreams/0/tls/server_name 1:59 The upstream "a" has a server_name that is invalid in TLS: it must be a host name without a port',
    'bad_value /upstreams/1/tls/server_name 1:153 The upstream "b" has a server_name that is invalid in TLS: it must be a host name without a port',
  ],
  [
    "a header to let through that is never removed, and one that the gateway writes",
    "forward_client_headers: [X-Forwarded-Prefix, X-Mine, X-Forwarded-For]",
    ...[1, 2].map(
      (at) =>
        `bad_value /forward_client_headers/${at} 1:${[0, 46, 54][at]} ${["", "X-Mine", "X-Forwarded-For"][at]} is not a removed header: the gateway writes it itself or forwards it anyway`,
    ),
  ],
  [
    "secret references in fields that resolve none; substitutions have names of their own",
    "policies: [{name: p, callout: {type: opa, url: 'http://h/${PLACE}'}}]\nroutes:\n  - {name: r, match: {path: {type: prefix, value: /}, headers: {a: '${file:/run/x}'}}, action: {type: respond, status: 200, body: '${BODY}'}}\n  - {name: s, service: x, match: {path: {type: exact, value: '/a/{id}'}}, action: {type: proxy, rewrite: {type: regex, pattern: '(?<n>.*)', substitution: '/${n}/${id}'}}}\nservices: [{name: x, upstream: x}]\nupstreams: [{name: x, endpoints: [{address: h, port: 1}]}]",
    "secret_malformed /policies/0/callout/url 1:48 policies[0].callout.url has a secret reference, which is only resolved in secret fields; write the value",
    "secret_malformed /routes/0/match/headers/a 3:68 routes[0].match.headers.a has a secret reference, which is only resolved in secret fields; write the value",
  ],
  [
    "two of a name",
    "policies: [{name: a}, {name: a}]",
    'duplicate_name /policies/1/name 1:30 Another policy is named "a" already',
  ],
  [
    "a service that does not exist",
    "services: [{name: users, upstream: u}]\nupstreams: [{name: u, endpoints: [{address: h, port: 1}]}]\nroutes: [{name: r, service: user, match: {path: {type: exact, value: /}}, action: {type: proxy}}]",
    'unknown_reference /routes/0/service 3:29 There is no service "user". Did you mean "users"?',
  ],
  [
    "an upstream that does not exist",
    "services: [{name: a, upstream: nowhere}]",
    'unknown_reference /services/0/upstream 1:32 There is no upstream "nowhere"',
  ],
  [
    "a policy that does not exist, at the root",
    "global_policies: [gold]",
    'unknown_reference /global_policies/0 1:19 There is no policy "gold"',
  ],
  [
    "a group without members",
    "gateway: {authorization: {allowed_groups: [staff]}}\nconsumers: [{name: a, groups: [stuff], credentials: [{type: api_key, key: k}]}]",
    'unknown_reference /gateway/authorization/allowed_groups/0 1:44 No consumer is in the group "staff". Did you mean "stuff"?',
  ],
  [
    "a provider's consumer that does not exist",
    "gateway: {jwt_providers: [{name: p, jwks_url: 'https://a/', consumer: b}]}",
    'unknown_reference /gateway/jwt_providers/0/consumer 1:71 There is no consumer "b"',
  ],
  [
    "a proxy route without a service",
    "routes: [{name: r, match: {path: {type: exact, value: /}}, action: {type: proxy}}]",
    'required /routes/0/service 1:10 The route "r" proxies, so it needs a service',
  ],
  [
    "a service with neither upstream nor split",
    "services: [{name: a}]",
    'required /services/0/upstream 1:12 The service "a" needs an upstream, or a split over several',
  ],
  [
    "a service with both",
    "services: [{name: a, upstream: u, split: {targets: [{upstream: u}, {upstream: v}]}}]\nupstreams: [{name: u, endpoints: [{address: h, port: 1}]}, {name: v, endpoints: [{address: h, port: 2}]}]",
    'bad_value /services/0/split 1:35 The service "a" has an upstream and a split; keep one of them',
  ],
  [
    "a split without weight",
    "services: [{name: a, split: {targets: [{upstream: u, weight: 0}, {upstream: v, weight: 0}]}}]\nupstreams: [{name: u, endpoints: [{address: h, port: 1}]}, {name: v, endpoints: [{address: h, port: 2}]}]",
    'out_of_range /services/0/split/targets 1:30 The split of "a" has no weight above 0, so no upstream would get requests',
  ],
  [
    "a split over one upstream twice",
    "services: [{name: a, split: {targets: [{upstream: u}, {upstream: u}]}}]\nupstreams: [{name: u, endpoints: [{address: h, port: 1}]}]",
    'duplicate_name /services/0/split/targets/1/upstream 1:66 The split of "a" names the upstream "u" twice',
  ],
  [
    "an upstream without endpoints",
    "upstreams: [{name: u, endpoints: []}]",
    'required /upstreams/0/endpoints 1:23 The upstream "u" needs at least one endpoint, or dns_discovery',
  ],
  [
    "an endpoint that is there twice",
    "upstreams: [{name: u, endpoints: [{address: H, port: 1}, {address: h, port: 1}]}]",
    'duplicate_name /upstreams/0/endpoints/1 1:58 The upstream "u" has the endpoint h:1 twice',
  ],
  [
    "an endpoint whose address is a number too large",
    "upstreams: [{name: u, endpoints: [{address: 1.2.3.999, port: 1}]}]",
    'bad_value /upstreams/0/endpoints/0/address 1:45 The upstream "u" has an endpoint whose address is no IP address or host name; set the port in its own field',
  ],
  [
    "an endpoint with its port in its address",
    "upstreams: [{name: u, endpoints: [{address: 'h:80', port: 1}]}]",
    'bad_value /upstreams/0/endpoints/0/address 1:45 The upstream "u" has an endpoint whose address is no IP address or host name; set the port in its own field',
  ],
  [
    "header_hash without hash_header",
    "upstreams: [{name: u, load_balancer: header_hash, endpoints: [{address: h, port: 1}]}]",
    'required /upstreams/0/hash_header 1:13 The upstream "u" balances by header_hash, so it needs hash_header',
  ],
  [
    "hash_header without header_hash",
    "upstreams: [{name: u, hash_header: x, endpoints: [{address: h, port: 1}]}]",
    'bad_value /upstreams/0/hash_header 1:36 The upstream "u" has hash_header, which only header_hash looks at',
  ],
  [
    "probes that last longer than their interval",
    "upstreams: [{name: u, health: {}, active_health: {interval_ms: 1000}, endpoints: [{address: h, port: 1}]}]",
    'out_of_range /upstreams/0/active_health/interval_ms 1:64 interval_ms of the upstream "u" must be at least timeout_ms: it is 1000, and timeout_ms is 2000',
  ],
  [
    "a jitter larger than the interval",
    "upstreams: [{name: u, health: {}, active_health: {timeout_ms: 10, jitter_ms: 5001}, endpoints: [{address: h, port: 1}]}]",
    'out_of_range /upstreams/0/active_health/interval_ms 1:35 interval_ms of the upstream "u" must be at least jitter_ms: it is 5000, and jitter_ms is 5001',
  ],
  [
    "active health without health",
    "upstreams: [{name: u, active_health: {}, endpoints: [{address: h, port: 1}]}]",
    'required /upstreams/0/health 1:13 The upstream "u" has active_health, which needs health; "health: {}" takes the defaults',
  ],
  [
    "a backoff whose cap is below its base",
    "upstreams: [{name: u, retries: {backoff_base_ms: 300}, endpoints: [{address: h, port: 1}]}]",
    'out_of_range /upstreams/0/retries/backoff_cap_ms 1:23 backoff_cap_ms of the upstream "u" must be at least backoff_base_ms: it is 250, and backoff_base_ms is 300',
  ],
  [
    "hedging without a buffer",
    "upstreams: [{name: u, retries: {hedge: {hedge_after_ms: 5}}, endpoints: [{address: h, port: 1}]}]",
    'required /upstreams/0/retries/buffer_max_bytes 1:23 Hedging of the upstream "u" needs retries.buffer_max_bytes above 0',
  ],
  [
    "TLS settings of an upstream without TLS",
    "upstreams: [{name: u, tls: {server_name: x}, endpoints: [{address: h, port: 1}]}]",
    'bad_value /upstreams/0/tls 1:23 The upstream "u" speaks http1, which has no TLS; use https or http2',
  ],
  [
    "a dry run of shedding without a cap",
    "gateway: {load_shed_dry_run: true}",
    "required /gateway/load_shed_dry_run 1:30 load_shed_dry_run has no effect without max_concurrent_requests; set it, or remove this setting",
  ],
  [
    "an admission queue without a cap",
    "gateway: {admission_queue: {enabled: true}}",
    "required /gateway/admission_queue 1:11 admission_queue has no effect without max_concurrent_requests; set it, or remove this setting",
  ],
  [
    "a certificate credential with nothing to know it by",
    "consumers: [{name: a, credentials: [{type: mtls}]}]",
    'required /consumers/0/credentials/0 1:37 A credential of the type mtls of "a" needs exactly one of subject and fingerprint',
  ],
  [
    "a network of one character",
    "trusted_proxies: [a]",
    "bad_cidr /trusted_proxies/0 1:19 gateway.trusted_proxies[0] must be an IP address or a network such as 10.0.0.0/8",
  ],
  [
    "a trusted proxy that is no network",
    "trusted_proxies: [10.0.0.0/8, 10.0.0.300]",
    "bad_cidr /trusted_proxies/1 1:31 gateway.trusted_proxies[1] must be an IP address or a network such as 10.0.0.0/8",
  ],
  [
    "a header name with a space",
    "routes: [{name: r, match: {path: {type: exact, value: /}, headers: {'x y': a}}, action: {type: respond, status: 200}}]",
    'bad_header /routes/0/match/headers/x y 1:76 "x y" is not a legal header name',
  ],
  [
    "a header value with a line break",
    'routes: [{name: r, match: {path: {type: exact, value: /}}, action: {type: respond, status: 200, headers: {a: "x\\r\\ny: z"}}}]',
    "bad_header /routes/0/action/headers/a 1:110 routes[0].action.headers.a has characters that a header's value cannot have, or space at its ends",
  ],
  [
    "a renaming to no header name",
    "routes: [{name: r, match: {path: {type: exact, value: /}}, transforms: {request: {headers: {rename: {a: 'b:'}}}}, action: {type: respond, status: 200}}]",
    'bad_header /routes/0/transforms/request/headers/rename/a 1:105 "b:" is not a legal header name',
  ],
  [
    "a secret that cannot be resolved",
    "consumers: [{name: a, credentials: [{type: api_key, key: '${NOPE}'}]}]",
    "secret_unresolved /consumers/0/credentials/0/key 1:58 consumers[0].credentials[0].key cannot be resolved: the environment variable NOPE is not set",
  ],
  [
    "a reference inside of a value",
    "consumers: [{name: a, credentials: [{type: api_key, key: 'x${NOPE}'}]}]",
    "secret_malformed /consumers/0/credentials/0/key 1:58 consumers[0].credentials[0].key is not a correct secret reference: a reference has to be the whole value; write ${NAME} or ${file:/path}",
  ],
  [
    "a placeholder that was sent back",
    "webhooks: [{url: 'http://h/', events: [breaker_opened], headers: {X-Key: '${redacted:sha256:01234567}'}}]",
    "redacted_placeholder /webhooks/0/headers/X-Key 1:74 webhooks[0].headers.X-Key holds the placeholder that replaces a secret in output; write the secret or a reference",
  ],
  [
    "two listeners on one address",
    "listeners: [{name: a, address: 127.0.0.1, port: 80}, {name: b, address: 127.0.0.1, port: 80}]",
    'address_collision /listeners/1/port 1:90 The listener "b" wants 127.0.0.1 port 80, which the listener "a" has',
  ],
  [
    "a listener on all addresses and one on one of them",
    "listeners: [{name: a, address: '::', port: 80}, {name: b, address: 127.0.0.1, port: 80}]",
    'address_collision /listeners/1/port 1:85 The listener "b" wants 127.0.0.1 port 80, which the listener "a" has',
  ],
  [
    "https without tls",
    "listeners: [{name: a, address: '::', port: 80, protocol: https}]",
    'required /listeners/0/tls 1:13 The listener "a" speaks https, so it needs tls with a certificate',
  ],
  [
    "tls without https",
    "listeners: [{name: a, address: '::', port: 80, tls: {}}]",
    'bad_value /listeners/0/tls 1:48 The listener "a" has tls but does not speak it; set protocol to https',
  ],
  [
    "https without a certificate",
    "listeners: [{name: a, address: '::', port: 80, protocol: https, tls: {}}]",
    'required /listeners/0/tls/cert_file 1:65 The listener "a" has no certificate',
  ],
  [
    "a file that does not exist",
    "listeners: [{name: a, address: '::', port: 80, protocol: https, tls: {cert_file: /nope/c, key_file: /nope/k}}]",
    "bad_file /listeners/0/tls/cert_file 1:82 listeners[0].tls.cert_file: the file /nope/c does not exist",
    "bad_file /listeners/0/tls/key_file 1:101 listeners[0].tls.key_file: the file /nope/k does not exist",
  ],
  [
    "an admin API without tls",
    "admin: {}",
    "required /admin/tls 1:1 The admin API needs tls, since operators are known by their certificates; for trying out, GATEWAY_ADMIN_DEV=1 allows plain HTTP on loopback",
  ],
  [
    "an admin API that binds to no address",
    "admin: {bind: 2019}",
    "type /admin/bind 1:15 admin.bind must be a text; it is a number; put it in quotes",
    "required /admin/tls 1:1 The admin API needs tls, since operators are known by their certificates; for trying out, GATEWAY_ADMIN_DEV=1 allows plain HTTP on loopback",
  ],
];

for (const [name, text, ...expected] of cases) {
  void test(`an issue has code, pointer, line, column and a sentence: ${name}`, () => {
    assert.deepEqual(errorsOf(text).toSorted(), expected.toSorted());
  });
}

for (const [text, hint] of [
  ["10.0.0.*", "; write 10.0.0.0/24"],
  ["10.*.*.*", "; write 10.0.0.0/8"],
  ["10/8", "; write all four parts of the address"],
  ["10.0.0.0/255.255.128.0", "; write the mask as a length, /17"],
  ["10.0.0.0/255.0.255.0", ""],
  ["10.0.0.1:80", "; leave the port out"],
  ["10.0.0.1-10.0.0.9", "; a range is written as one network or several"],
  ["localhost", "; this machine is 127.0.0.0/8 and ::1"],
  ["private_ranges", "; private addresses are 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and fc00::/7"],
  ["*", "; every address is 0.0.0.0/0 and ::/0"],
  ["example.com", ""],
] as const) {
  void test(`${text} is no network, and what it may have meant is said`, () => {
    const message = `gateway.trusted_proxies[0] must be an IP address or a network such as 10.0.0.0/8${hint}`;
    assert.deepEqual(errorsOf(`trusted_proxies: ["${text}"]\n${route}`), [
      `bad_cidr /trusted_proxies/0 1:19 ${message}`,
    ]);
  });
}

void test("a secret reference in a text for clients is a warning", () => {
  const text =
    "routes: [{name: r, match: {path: {type: prefix, value: /}}, action: {type: respond, status: 200, body: '${BODY}'}}]";
  assert.deepEqual(told(text), [
    "warning secret_malformed /routes/0/action/body 1:104 routes[0].action.body has a secret reference, which is only resolved in secret fields; clients get it as it stands",
  ]);
});

test("one address that looks like a network is worth a warning", () => {
  const warned = (text: string): boolean =>
    told(`trusted_proxies: ["${text}"]\n${route}`).some((line) => /^warning bad_cidr .* is one address/.test(line));
  assert.deepEqual(["10.0.0.0", "2001:db8::", "10.0.0.0/24", "10.0.0.1", "0.0.0.0", "::", "::1"].filter(warned), [
    "10.0.0.0",
    "2001:db8::",
  ]);
});

void test("what is unused is a warning, and so is a document without routes", () => {
  const text =
    "upstreams: [{name: u, endpoints: [{address: h, port: 1}]}, {name: v, endpoints: [{address: h, port: 1}]}]\nservices: [{name: s, upstream: u}]\npolicies: [{name: p}]\nconsumers: [{name: c}]";
  assert.deepEqual(told(text), [
    "warning empty_routes  1:1 There is no route, so every request gets 404",
    'warning unused /upstreams/1 1:60 No service uses the upstream "v"',
    'warning unused /services/0 2:12 No route uses the service "s"',
    'warning unused /policies/0 3:12 Nothing uses the policy "p"',
    'warning unused /consumers/0 4:13 The consumer "c" has no credentials, so no request is ever recognised as its own',
  ]);
  assert.deepEqual(told("allow_empty_routes: true"), []);
});

void test("the smallest useful document has no issue", () => {
  const text = `
listeners: [{name: public, address: 127.0.0.1, port: 18080}]
upstreams:
  - {name: pool-a, endpoints: [{address: 127.0.0.1, port: 18081}], breaker: {consecutive_failures: 3, open_ms: 1000}, health: {}}
services: [{name: svc-a, upstream: pool-a}]
consumers: [{name: team-a, credentials: [{type: api_key, key: "\${TEAM_A_KEY}"}], quotas: {daily_requests: 100}}]
routes:
  - {name: a-v1, service: svc-a, auth_required: true, match: {path: {type: prefix, value: /v1}}, action: {type: proxy, rewrite: {type: strip_prefix}}}
webhooks: [{url: "http://127.0.0.1:18082/hook", events: [breaker_opened, config_published]}]`;
  assert.deepEqual(told(text, { environment: { TEAM_A_KEY: "k" } }), []);
});

void test("without tls, the admin API is for loopback and for trying out only", () => {
  const environment = { GATEWAY_ADMIN_DEV: "1" };
  assert.deepEqual(errorsOf(`admin: {}\n${route}`, { environment }), []);
  assert.deepEqual(errorsOf(`admin: {bind: "[::1]:0"}\n${route}`, { environment }), []);
  assert.deepEqual(errorsOf(`admin: {bind: "0.0.0.0:2019"}\n${route}`, { environment }), [
    "bad_value /admin/bind 1:15 Without tls, GATEWAY_ADMIN_DEV=1 allows the admin API on loopback addresses only",
  ]);
  for (const value of ["0", "true", ""]) {
    assert.equal(errorsOf(`admin: {}\n${route}`, { environment: { GATEWAY_ADMIN_DEV: value } }).length, 1, value);
  }
  assert.match(
    errorsOf("admin: {}\nlisteners: [{name: a, address: 0.0.0.0, port: 2019}]", { environment })[0] ?? "",
    /^address_collision \/admin/,
  );
});

for (const [text, expected] of [
  ["127.0.0.1:2019", { address: "127.0.0.1", port: 2019 }],
  ["localhost:0", { address: "localhost", port: 0 }],
  ["[::1]:65535", { address: "::1", port: 65_535 }],
  ["::1:2019", undefined],
  ["[::1]", undefined],
  ["[x]:1", undefined],
  ["127.0.0.1", undefined],
  [":2019", undefined],
  ["a:65536", undefined],
  ["a:1e3", undefined],
] as const) {
  void test(`admin.bind ${text} is ${expected === undefined ? "refused" : "taken apart"}`, () => {
    assert.deepEqual(parseBind(text), expected);
  });
}

void test("certificates and keys have to be there, to be PEM, and to belong together; an expired one is a warning", async () => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  const { cert, key } = credentials(authority);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await writeFile(directory.file("cert"), cert);
  await writeFile(directory.file("key"), key);
  await writeFile(directory.file("other-key"), privateKey.export({ type: "pkcs8", format: "pem" }));
  await writeFile(directory.file("roots"), authority.certificatePem);
  await writeFile(directory.file("text"), "-----BEGIN CERTIFICATE-----\nQUFB\n-----END CERTIFICATE-----\n");
  const listener = (tls: string): string =>
    `${route}\nlisteners: [{name: a, address: '::', port: 80, protocol: https, tls: {${tls}}}]`;
  const codes = (tls: string): string[] =>
    told(listener(tls), { directory: directory.path }).map((line) => line.split(" ").slice(0, 2).join(" "));
  assert.deepEqual(codes("cert_file: cert, key_file: key, client_ca_file: roots"), []);
  assert.deepEqual(codes("cert_file: cert, key_file: other-key"), ["bad_file /listeners/0/tls/key_file"]);
  assert.deepEqual(codes("cert_file: cert"), ["required /listeners/0/tls/key_file"]);
  assert.deepEqual(codes("cert_file: text, key_file: text"), [
    "bad_file /listeners/0/tls/cert_file",
    "bad_file /listeners/0/tls/key_file",
  ]);
  assert.deepEqual(codes("cert_file: key, key_file: key"), ["bad_file /listeners/0/tls/cert_file"]);
  assert.deepEqual(codes("cert_file: cert, key_file: key, client_ca_file: key"), [
    "bad_file /listeners/0/tls/client_ca_file",
  ]);
  const suites = (list: string): string[] => codes(`cert_file: cert, key_file: key, ciphers: ${list}`);
  assert.deepEqual(suites("[AES128-SHA, TLS_AES_128_GCM_SHA256]"), []);
  for (const wrong of [
    "ECDHE-RSA-AES128-GCM-SHA265",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "'HIGH:!aNULL'",
    "PSK-AES128-CBC-SHA",
  ]) {
    assert.deepEqual(suites(`[AES128-SHA, ${wrong}]`), ["bad_value /listeners/0/tls/ciphers/1"], wrong);
  }
  assert.deepEqual(suites("[AES128-SHA, AES128-SHA]"), ["bad_value /listeners/0/tls/ciphers"]);
  assert.deepEqual(suites("[]"), ["out_of_range /listeners/0/tls/ciphers"]);
  const twice =
    "certificates: [{server_names: [a.test, b.test], cert_file: cert, key_file: key}, {server_names: [A.test], cert_file: cert, key_file: key}]";
  assert.deepEqual(codes(twice), ["duplicate_name /listeners/0/tls/certificates/1/server_names/0"]);
  const names = (list: string): string[] =>
    codes(`certificates: [{server_names: [${list}], cert_file: cert, key_file: key}]`);
  assert.deepEqual(names("'*.a.test', a.test, '*.test', Bücher.example, x_y.test, localhost, a.test."), [
    "duplicate_name /listeners/0/tls/certificates/0/server_names/6",
  ]);
  for (const wrong of [
    "'*'",
    "'*.'",
    "'a.*.test'",
    "'*a.test'",
    "'*.*.test'",
    "'a.test:443'",
    "10.0.0.1",
    "'*.10.0.0.1'",
    "'::1'",
    "'a b'",
    ".a.test",
  ]) {
    assert.deepEqual(names(wrong), ["bad_value /listeners/0/tls/certificates/0/server_names/0"], wrong);
  }
  const parts = { checks: [], clock: new FakeClock(Date.UTC(2090, 0, 1)), environment: {} };
  const late = checkDocument(
    readDocument(listener("cert_file: cert, key_file: key"), directory.path),
    parts,
    freshFindings({}),
  );
  assert.deepEqual(
    late.map(({ severity, code }) => [severity, code]),
    [["warning", "bad_file"]],
  );
});

void test("what parts of the gateway find is placed in the text, whichever way it was written", () => {
  const check: DocumentCheck = (document, report) => {
    report.error("ssrf_deny_required", ["gateway", "ssrf_filter", "deny"], "deny is required");
    report.warning("route_shadowed", ["routes", 0], `${document.routes.length} routes`);
  };
  assert.deepEqual(told(`${route}\nssrf_filter: {allow: []}`, { checks: [check] }), [
    "warning route_shadowed /routes/0 1:10 1 routes",
    "ssrf_deny_required /ssrf_filter/deny 2:1 deny is required",
  ]);
  assert.deepEqual(told(`gateway:\n  ssrf_filter: {deny: []}\n${route}`, { checks: [check] }), [
    "ssrf_deny_required /gateway/ssrf_filter/deny 2:17 deny is required",
    "warning route_shadowed /routes/0 3:10 1 routes",
  ]);
});

void test("broken structure keeps no other issue back, and makes none up", () => {
  const check: DocumentCheck = ({ webhooks }, report) => {
    for (const [at, { url }] of webhooks.entries()) {
      if (!url.startsWith("http")) report.error("bad_url", ["webhooks", at, "url"], "not absolute");
    }
  };
  const text = `
webhooks:
  - {url: 1, events: []}
  - {url: /relative, events: [], timeout_ms: 0}
services: [{name: 7, upstream: u}, {name: b}]
upstreams: [{name: u, endpoints: [{address: h}]}]
routes: [{name: r, service: "7", match: {path: {type: exact, value: /}}, action: {type: proxy}}]`;
  assert.deepEqual(
    told(text, { checks: [check] }).map((line) => line.split(" ").slice(0, 2).join(" ")),
    [
      "type /webhooks/0/url",
      "bad_url /webhooks/1/url",
      "out_of_range /webhooks/1/timeout_ms",
      "type /services/0/name",
      "required /services/1/upstream",
      "required /upstreams/0/endpoints/0/port",
    ],
  );
});

/** `code pointer` of each error. */
const placesOf = (text: string, scene?: Scene): string[] =>
  errorsOf(text, scene).map((line) => line.split(" ").slice(0, 2).join(" "));

void test("fields of a union whose type says nothing are read as what most of them belong to", () => {
  const credential = (fields: string): string => `consumers: [{name: a, credentials: [{${fields}}]}]`;
  const fieldPath = "/consumers/0/credentials/0";
  assert.deepEqual(placesOf(credential("type: bsic, username: 'a:b', pasword: x")), [
    `required ${fieldPath}/password`,
    `bad_value ${fieldPath}/type`,
    `bad_value ${fieldPath}/username`,
    `unknown_field ${fieldPath}/pasword`,
  ]);
  assert.deepEqual(placesOf(credential('key: "${NOPE}"')), [
    `required ${fieldPath}/type`,
    `secret_unresolved ${fieldPath}/key`,
  ]);
  assert.deepEqual(placesOf(credential("type: 5, x: 1")), [
    `bad_value ${fieldPath}/type`,
    `unknown_field ${fieldPath}/x`,
  ]);
  // What only some of the types need is left until the type is right.
  assert.deepEqual(placesOf(credential("type: x, not_before: 5")), [
    `bad_value ${fieldPath}/type`,
    `type ${fieldPath}/not_before`,
  ]);
});

void test("a field with a wrong name is not missing to the checks behind the schema", () => {
  const proxy = (field: string): string =>
    `routes: [{name: r, ${field}: s, match: {path: {type: exact, value: /}}, action: {type: proxy}}]`;
  assert.deepEqual(placesOf(proxy("servce")), ["unknown_field /routes/0/servce"]);
  assert.deepEqual(placesOf(proxy("surplus")), ["required /routes/0/service", "unknown_field /routes/0/surplus"]);
});

const references = `
routes: [{name: r, service: no-service, policies: [no-policy], match: {path: {type: exact, value: /}}, action: {type: proxy}}]
services: [{name: s, upstream: no-upstream, authorization: {allowed_consumers: [nobody], allowed_groups: [none]}}]
`;
const unknown = {
  service: "unknown_reference /routes/0/service",
  policy: "unknown_reference /routes/0/policies/0",
  upstream: "unknown_reference /services/0/upstream",
  consumer: "unknown_reference /services/0/authorization/allowed_consumers/0",
  group: "unknown_reference /services/0/authorization/allowed_groups/0",
};

for (const [what, text, ...hidden] of [
  ["a webhook without its URL", "webhooks: [{events: [breaker_opened]}]"],
  ["an upstream with a port that is none", "upstreams: [{name: u, endpoints: [{address: h, port: x}]}]"],
  ["an upstream without a name", "upstreams: [{endpoints: [{address: h, port: 1}]}]", "upstream"],
  ["a policy that is a text", "policies: [gold]", "policy"],
  ["a section under a wrong name", "polices: [{name: no-policy}]", "policy"],
  ["a section twice", "policies: []\npolicies: [{name: no-policy}]", "policy"],
  ["a name with an unknown tag", "policies: [{name: !x no-policy}]", "policy"],
  ["consumers that are a mapping", "consumers: {}", "consumer", "group"],
  ["a consumer with a name too long", `consumers: [{name: ${"x".repeat(256)}}]`, "consumer"],
  ["a consumer with a group that is a number", "consumers: [{name: c, groups: [5]}]", "group"],
  ["a consumer with a wrong priority", "consumers: [{name: c, priority: 11}]"],
  ["a text that is not YAML", "webhooks: [", "service", "policy", "upstream", "consumer", "group"],
] as const) {
  void test(`an unknown name is reported unless it may be one that could not be read: ${what}`, () => {
    const found = placesOf(`${references}${text}`).filter((line) => line.startsWith("unknown_reference"));
    const expected = Object.entries(unknown).filter(([kind]) => !(hidden as readonly string[]).includes(kind));
    assert.deepEqual(found.toSorted(), expected.map(([, line]) => line).toSorted());
  });
}

void test("no message has the name that stands where none could be read", () => {
  assert.deepEqual(errorsOf("services: [{name: 7}]"), [
    'required /services/0/upstream 1:12 The service "?" needs an upstream, or a split over several',
    "type /services/0/name 1:19 services[0].name must be a text; it is a number; put it in quotes",
  ]);
});

void test("members that could not be read are no duplicates of each other, nor of what could", () => {
  assert.deepEqual(placesOf("policies: [{name: 1}, {name: 1}, 5]"), [
    "type /policies/0/name",
    "type /policies/1/name",
    "type /policies/2",
  ]);
  assert.deepEqual(placesOf("policies: [{name: a, rate_limits: [{selector: [ip, i], requests_per: {s: 1}}]}]"), [
    "bad_value /policies/0/rate_limits/0/selector/1",
  ]);
  const ports =
    "upstreams: [{name: u, endpoints: [{address: h, port: x}, {address: h, port: y}, {address: h, port: 1}]}]";
  assert.deepEqual(placesOf(ports), ["type /upstreams/0/endpoints/0/port", "type /upstreams/0/endpoints/1/port"]);
});

void test("where more could not be read than is listed, nothing else is looked for", () => {
  const unread = Array.from({ length: 501 }, () => "{name: 1}").join(", ");
  const issues = errorsOf(`services: [{name: a}]\npolicies: [${unread}]`);
  assert.equal(issues.length, 501);
  assert.match(issues[0] ?? "", /^type \/policies\/0\/name/);
  assert.match(issues.at(-1) ?? "", /There are at least 501 errors; the first 500 are listed$/);
});

void test("a check that throws is an issue of a sound document, without its message", () => {
  const check: DocumentCheck = function broken() {
    throw new TypeError("hunter2");
  };
  assert.deepEqual(errorsOf(route, { checks: [check] }), [
    "compile_failed  1:1 The document could not be checked: TypeError in broken",
  ]);
  assert.deepEqual(errorsOf(`${route}\nx: 1`, { checks: [check] }), [
    'unknown_field /x 2:1 "x" is not a field of the document',
  ]);
});

void test("no issue has a secret: not the value of a field for them, not of a variable, not of a mistyped field", () => {
  const secret = "kq7Zs9Wx2vPb4";
  const positions = [
    `consumers: [{name: a, credentials: [{type: api_key, key: "${secret}\\r\\n"}]}]`,
    `consumers: [{name: a, credentials: [{type: api_key, keyy: ${secret}}]}]`,
    `consumers: [{name: a, credentials: [{type: ${secret}, key: x}]}]`,
    `consumers: [{name: a, credentials: [{type: api_key, key: [${secret}]}]}]`,
    `consumers: [{name: a, credentials: [{type: api_key, key: "\${${secret}"}]}]`,
    `consumers: [{name: a, credentials: [{type: api_key, key: "${secret}\${"}]}]`,
    `webhooks: [{url: 'http://h/', events: [], headers: {a: "${secret}\\n"}}]`,
    `webhooks: [{url: 'http://h/', events: [], headers: {a: "\${KEY}"}}]`,
    `webhooks: [{url: 'http://h/', events: [], headers: {a: "${secret}`,
    `webhooks: [{url: 'http://h/', events: [], headers: {a: "${secret}" "${secret}"}}]`,
    `webhooks: [{url: 'http://h/', events: [], headers: {a: !tag ${secret}}}]`,
    `webhooks: [{url: 'http://h/', events: [], headers: {a: *${secret}}}]`,
    `webhooks: [{url: 'http://h/', events: [], headers: {a: @${secret}}}]`,
    `webhooks: [{url: 'http://h/', events: [], headers: {a: "\\q${secret}"}}]`,
    `gateway: {name: "${secret}!", shutdown_timeout_ms: ${secret}, request_id_header: "${secret} x"}`,
    `upstreams: [{name: u, load_balancer: ${secret}, trusted_ca_file: 5, endpoints: [{address: "${secret}:1", port: 1}]}]`,
  ];
  for (const text of positions) {
    const issues = told(text, { environment: { KEY: `${secret}\n` } });
    assert.ok(issues.length > 0, text);
    for (const issue of issues) assert.ok(!issue.includes(secret), issue);
  }
});

void test("any document that can be read can be checked", () => {
  const names = fc.constantFrom("a", "b", "", "__proto__", "${X}", redactedText("x"));
  const documents = fc.record(
    {
      routes: fc.array(
        fc.record(
          {
            name: names,
            service: names,
            match: fc.constant({ path: { type: "prefix", value: "/" } }),
            action: fc.constantFrom({ type: "proxy" }, { type: "respond", status: 200, headers: { a: "b" } }),
            policies: fc.array(names),
          },
          { requiredKeys: [] },
        ),
      ),
      services: fc.array(
        fc.record(
          { name: names, upstream: names, split: fc.record({ targets: fc.array(fc.record({ upstream: names })) }) },
          { requiredKeys: [] },
        ),
      ),
      consumers: fc.array(
        fc.record(
          {
            name: names,
            groups: fc.array(names),
            credentials: fc.array(
              fc.record(
                { type: fc.constantFrom("api_key", "mtls"), key: names, subject: names },
                { requiredKeys: ["type"] },
              ),
            ),
          },
          { requiredKeys: [] },
        ),
      ),
      listeners: fc.array(
        fc.record(
          {
            name: names,
            address: fc.constantFrom("::", "127.0.0.1", "%", ""),
            port: fc.constantFrom(0, 80, -1),
            protocol: fc.constantFrom("http", "https"),
          },
          { requiredKeys: [] },
        ),
      ),
      trusted_proxies: fc.array(fc.constantFrom("10.0.0.0/8", "x", "")),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(documents, (document) => {
      for (const line of told(JSON.stringify(document))) assert.ok(!line.includes("compile_failed"), line);
    }),
    { numRuns: 500 },
  );
});
