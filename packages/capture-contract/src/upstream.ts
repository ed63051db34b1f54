import { defineOperations, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { hostList } from "./primitives.ts";

const protocol = oneOf(["http", "https", "socks5"], { description: "Protocol of the upstream proxy" });
const host = Type.String({ minLength: 1, maxLength: 255, description: "Name or address of the upstream proxy" });
const port = Type.Integer({ minimum: 1, maximum: 65_535 });

/** Chaining through another proxy. */
export const UpstreamProxySettings = strictObject({
  enabled: Type.Boolean({
    default: false,
    "x-applies": "restart",
    description: "Connect to origins through another proxy",
  }),
  protocol: oneOf(["http", "https", "socks5"], {
    default: "http",
    "x-applies": "restart",
    description: "Protocol of the upstream proxy",
  }),
  host: Type.String({
    default: "",
    maxLength: 255,
    "x-applies": "restart",
    description: "Name or address of the upstream proxy",
  }),
  port: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 65535,
    "x-applies": "restart",
    description: "Port of the upstream proxy",
  }),
  auth_username: nullable(Type.String({ maxLength: 255 }), {
    default: null,
    "x-applies": "now",
    description: "User name for the upstream proxy",
  }),
  auth_password: nullable(Type.String({ maxLength: 255 }), {
    default: null,
    "x-applies": "now",
    "x-secret": true,
    description: "Password for the upstream proxy; never shown",
  }),
  no_proxy_hosts: hostList("Hosts that are reached directly"),
});

/** The proxy to test, and the target. */
export const UpstreamTest = strictObject(
  {
    target: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 2048,
        description: "An http or https URL, or host:port to only open a connection. Default: https://example.com/",
      }),
    ),
    proxy: Type.Optional(
      strictObject(
        {
          protocol: Type.Optional(protocol),
          host,
          port,
          auth_username: Type.Optional(nullable(Type.String({ maxLength: 255 }))),
          auth_password: Type.Optional(nullable(Type.String({ maxLength: 255 }))),
        },
        {
          description:
            "A proxy to test before it is configured; no host bypasses it. Default: the configured one, enabled or not. The configured password is used if host, port and user name are the configured ones",
        },
      ),
    ),
  },
  { $id: "UpstreamTest" },
);
export type UpstreamTest = Static<typeof UpstreamTest>;

/** The result of a test. */
export const UpstreamTestResult = strictObject(
  {
    ok: Type.Boolean(),
    target: Type.String(),
    via: oneOf(["direct", "forward", "tunnel", "refused"], {
      description:
        "`direct`: the target is on the bypass list; `forward`: the request is sent to the proxy; `tunnel`: the proxy opens a connection; `refused`: this proxy cannot reach such a target",
    }),
    proxy: strictObject({ protocol, host: Type.String(), port: Type.Integer() }),
    duration_ms: Type.Number(),
    steps: Type.Array(
      strictObject({
        name: Type.String(),
        ok: Type.Boolean(),
        detail: Type.String(),
        duration_ms: Type.Number(),
      }),
      { description: "In order, up to the first that failed" },
    ),
    error: nullable(strictObject({ code: Type.String(), message: Type.String() }), {
      description: "The failure, as on an entry",
    }),
  },
  { $id: "UpstreamTestResult" },
);
export type UpstreamTestResult = Static<typeof UpstreamTestResult>;

export const upstreamOperations = defineOperations({
  testUpstream: {
    method: "POST",
    path: "/upstream/test",
    summary: "Test the connection to a target through the upstream proxy, with the time of each step",
    access: "config:write",
    body: UpstreamTest,
    bodyOptional: true,
    responses: { 200: UpstreamTestResult },
    expose: { mcp: { name: "test_upstream_proxy", readOnly: false } },
  },
});
