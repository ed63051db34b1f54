import assert from "node:assert/strict";
import { test } from "node:test";
import type { Access } from "@headworks/contract-kit";
import { apiExposureProblem, authorize, compileGate, type GateRequest, isApiPath, LOCAL_ADMIN } from "./gate.ts";

const gate = compileGate({
  boundHost: "127.0.0.1",
  allowedApiHosts: ["weir.corp.test", "*.lab.test"],
  publicIp: "203.0.113.7",
});

function ask(change: Partial<GateRequest>): string {
  const decision = gate({
    method: "GET",
    target: "/api/traffic",
    hosts: ["127.0.0.1:3001"],
    origin: undefined,
    forwardedProto: undefined,
    secFetchSite: undefined,
    secFetchMode: undefined,
    isUpgrade: false,
    localAddress: "127.0.0.1",
    ...change,
  });
  return decision.kind === "pass" ? "pass" : decision.code;
}

test("only names and addresses of this service are allowed, against DNS rebinding", () => {
  const table: readonly (readonly [string, string])[] = [
    ["127.0.0.1:3001", "pass"],
    ["127.0.0.1", "pass"],
    ["127.8.9.10:3001", "pass"],
    ["localhost:3001", "pass"],
    ["LOCALHOST.", "pass"],
    ["weir.localhost:3001", "pass"],
    ["[::1]:3001", "pass"],
    ["[::ffff:127.0.0.1]:3001", "pass"],
    ["203.0.113.7:3001", "pass"],
    ["weir.corp.test", "pass"],
    ["WEIR.corp.test:3001", "pass"],
    ["a.lab.test", "pass"],
    ["lab.test", "HOST_NOT_ALLOWED"],
    ["sub.weir.corp.test", "HOST_NOT_ALLOWED"],
    ["evil.test:3001", "HOST_NOT_ALLOWED"],
    ["localhost.evil.test", "HOST_NOT_ALLOWED"],
    ["127.0.0.1.evil.test", "HOST_NOT_ALLOWED"],
    ["127.0.0.1@evil.test", "HOST_NOT_ALLOWED"],
    ["evil.test:3001@127.0.0.1", "HOST_NOT_ALLOWED"],
    ["10.0.0.1:3001", "HOST_NOT_ALLOWED"],
    ["0.0.0.0:3001", "HOST_NOT_ALLOWED"],
    ["[::]:3001", "HOST_NOT_ALLOWED"],
    ["", "HOST_NOT_ALLOWED"],
    [":3001", "HOST_NOT_ALLOWED"],
    ["127.0.0.1:99999", "HOST_NOT_ALLOWED"],
    [" 127.0.0.1", "HOST_NOT_ALLOWED"],
  ];
  for (const [host, expected] of table) assert.equal(ask({ hosts: [host] }), expected, host);
  assert.equal(ask({ hosts: [] }), "HOST_NOT_ALLOWED");
  assert.equal(ask({ hosts: ["127.0.0.1", "evil.test"] }), "BAD_REQUEST");
  assert.equal(ask({ target: "http://127.0.0.1/api/traffic" }), "BAD_REQUEST");
  assert.equal(ask({ target: "*", method: "OPTIONS" }), "BAD_REQUEST");
});

test("the local address of a connection is ours on every interface", () => {
  assert.equal(ask({ hosts: ["192.168.1.9:3001"], localAddress: "192.168.1.9" }), "pass");
  assert.equal(ask({ hosts: ["192.168.1.9:3001"], localAddress: "::ffff:192.168.1.9" }), "pass");
  assert.equal(ask({ hosts: ["192.168.1.8:3001"], localAddress: "192.168.1.9" }), "HOST_NOT_ALLOWED");
  assert.equal(ask({ hosts: ["192.168.1.9:3001"], localAddress: undefined }), "HOST_NOT_ALLOWED");
});

test("pages of other sites can neither read nor change anything", () => {
  const own = "http://127.0.0.1:3001";
  const table: readonly (readonly [string, Partial<GateRequest>, string])[] = [
    ["own page", { origin: own, secFetchSite: "same-origin" }, "pass"],
    ["own page behind TLS", { origin: "https://127.0.0.1:3001", forwardedProto: "https" }, "pass"],
    ["own authority with TLS", { origin: "https://127.0.0.1:3001" }, "CROSS_SITE"],
    ["own authority without TLS, behind TLS", { origin: own, forwardedProto: "https" }, "CROSS_SITE"],
    ["own page, other case", { origin: "HTTP://127.0.0.1:3001" }, "pass"],
    ["program", {}, "pass"],
    ["address bar", { secFetchSite: "none", secFetchMode: "navigate" }, "pass"],
    ["simple POST", { method: "POST", origin: "https://evil.test", secFetchSite: "cross-site" }, "CROSS_SITE"],
    ["POST of an old browser", { method: "POST", origin: "http://evil.test" }, "CROSS_SITE"],
    [
      "other port of the machine",
      { method: "POST", origin: "http://127.0.0.1:8080", secFetchSite: "same-site" },
      "CROSS_SITE",
    ],
    ["other name of the machine", { origin: "http://localhost:3001" }, "CROSS_SITE"],
    ["sandboxed frame", { origin: "null" }, "CROSS_SITE"],
    ["prefix trick", { origin: "http://127.0.0.1:3001.evil.test" }, "CROSS_SITE"],
    ["form post by navigation", { method: "POST", secFetchSite: "cross-site", secFetchMode: "navigate" }, "CROSS_SITE"],
    ["image of another site", { secFetchSite: "cross-site", secFetchMode: "no-cors" }, "CROSS_SITE"],
    [
      "script tag on the UI's files",
      { target: "/assets/a.js", secFetchSite: "cross-site", secFetchMode: "no-cors" },
      "CROSS_SITE",
    ],
    ["link to API data", { secFetchSite: "cross-site", secFetchMode: "navigate" }, "CROSS_SITE"],
    [
      "link to API data, odd spelling",
      { target: "//API/traffic", secFetchSite: "cross-site", secFetchMode: "navigate" },
      "CROSS_SITE",
    ],
    [
      "link to API data, encoded",
      { target: "/%61pi/traffic", secFetchSite: "cross-site", secFetchMode: "navigate" },
      "CROSS_SITE",
    ],
    ["link to the UI", { target: "/traffic", secFetchSite: "cross-site", secFetchMode: "navigate" }, "pass"],
    [
      "link to the UI's root",
      { target: "/?q=status:500", secFetchSite: "same-site", secFetchMode: "navigate" },
      "pass",
    ],
    [
      "live socket of another site",
      {
        target: "/ws",
        isUpgrade: true,
        origin: "https://evil.test",
        secFetchSite: "cross-site",
        secFetchMode: "websocket",
      },
      "CROSS_SITE",
    ],
    [
      "live socket of the UI",
      { target: "/ws", isUpgrade: true, origin: own, secFetchSite: "same-origin", secFetchMode: "websocket" },
      "pass",
    ],
    ["unknown site relation", { secFetchSite: "banana" }, "CROSS_SITE"],
  ];
  for (const [what, change, expected] of table) assert.equal(ask(change), expected, what);
});

test("an API path is recognized in every spelling that some layer may accept", () => {
  for (const path of ["/api", "/api/x", "//api/x", "/API/x", "/%61pi/x", "/api%2fx", "/ws", "/health", "/metrics"]) {
    assert.equal(isApiPath(path), true, path);
  }
  for (const path of ["/", "/apiary", "/traffic", "/sessions/api", "/wsx"]) assert.equal(isApiPath(path), false, path);
});

test("a scope covers its resource and permission, and a star covers all of its part", () => {
  const table: readonly (readonly [Access, readonly string[] | undefined, string])[] = [
    ["public", undefined, "allowed"],
    ["traffic:read", undefined, "unauthenticated"],
    ["traffic:read", [], "forbidden"],
    ["traffic:read", ["traffic:read"], "allowed"],
    ["traffic:read", ["traffic:write"], "forbidden"],
    ["traffic:read", ["traffic"], "forbidden"],
    ["traffic:read", ["traffic:*"], "allowed"],
    ["traffic:delete", ["*:read"], "forbidden"],
    ["users:write", ["config:write", "users:write"], "allowed"],
    ["users:write", ["users:write:extra"], "forbidden"],
    ["users:write", [":write", "*"], "forbidden"],
    ["users:write", LOCAL_ADMIN.scopes, "allowed"],
  ];
  for (const [access, scopes, expected] of table) {
    assert.equal(authorize(access, scopes && { name: "x", scopes }), expected, `${access} ${String(scopes)}`);
  }
});

test("an API that others can reach needs authentication or an explicit option", () => {
  const table: readonly (readonly [string, boolean, boolean, boolean])[] = [
    ["127.0.0.1", false, false, true],
    ["127.1.2.3", false, false, true],
    ["::1", false, false, true],
    ["localhost", false, false, true],
    ["0.0.0.0", false, false, false],
    ["::", false, false, false],
    ["192.168.1.2", false, false, false],
    ["weir.corp.test", false, false, false],
    ["localhost.evil.test", false, false, false],
    ["0.0.0.0", true, false, true],
    ["0.0.0.0", false, true, true],
  ];
  for (const [apiHost, isAuthenticated, isInsecureAllowed, mayStart] of table) {
    const problem = apiExposureProblem({ apiHost, isAuthenticated, isInsecureAllowed });
    assert.equal(problem === undefined, mayStart, apiHost);
    if (problem !== undefined) assert.match(problem, /--insecure-api/);
  }
});
