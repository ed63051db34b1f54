import { defineOperations, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { hostList } from "./primitives.ts";

const protocol = oneOf(["http", "https", "socks5"], { description: "How that proxy is spoken to" });
const host = Type.String({ minLength: 1, maxLength: 255, description: "Name or address of that proxy" });
const port = Type.Integer({ minimum: 1, maximum: 65_535 });

/** Chaining through another proxy. */
export const UpstreamProxySettings = strictObject({
  enabled: Type.Boolean({
    default: false,
    "x-applies": "restart",
    description: "Reach origins by way of another proxy",
  }),
  protocol: oneOf(["http", "https", "socks5"], {
    default: "http",
    "x-applies": "restart",
    description: "How that proxy is spoken to",
  }),
  host: Type.String({
    default: "",
    maxLength: 255,
    "x-applies": "restart",
    description: "Name or address of that proxy",
  }),
  port: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 65535,
    "x-applies": "restart",
    description: "Port of that proxy",
  }),
  auth_username: nullable(Type.String({ maxLength: 255 }), {
    default: null,
    "x-applies": "now",
    description: "User name that proxy asks for",
  }),
  auth_password: nullable(Type.String({ maxLength: 255 }), {
    default: null,
    "x-applies": "now",
    "x-secret": true,
    description: "Its password; never shown",
  }),
  no_proxy_hosts: hostList("Hosts reached directly"),
});

/** Which proxy to try, and by what. */
export const UpstreamTest = strictObject(
  {
    target: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 2048,
        description:
          "An http or https URL, or host:port to open a connection and no more; https://example.com/ without",
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
            "A proxy to try before it is configured; nothing bypasses it. Without, the configured one, enabled or not. The configured password is used where place and user name are those that are configured",
        },
      ),
    ),
  },
  { $id: "UpstreamTest" },
);
export type UpstreamTest = Static<typeof UpstreamTest>;

/** How far the way to the target goes. */
export const UpstreamTestResult = strictObject(
  {
    ok: Type.Boolean(),
    target: Type.String(),
    via: oneOf(["direct", "forward", "tunnel", "refused"], {
      description:
        "`direct`: the target is on the bypass list; `forward`: the proxy gets the request itself; `tunnel`: it opens a connection; `refused`: this proxy cannot do what the target needs",
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
      { description: "In their order, up to the first that failed" },
    ),
    error: nullable(strictObject({ code: Type.String(), message: Type.String() }), {
      description: "As it would stand on an entry",
    }),
  },
  { $id: "UpstreamTestResult" },
);
export type UpstreamTestResult = Static<typeof UpstreamTestResult>;

export const upstreamOperations = defineOperations({
  testUpstream: {
    method: "POST",
    path: "/upstream/test",
    summary: "Reach a target by way of the upstream proxy, and report each step with its time",
    access: "config:write",
    body: UpstreamTest,
    bodyOptional: true,
    responses: { 200: UpstreamTestResult },
    expose: { mcp: { name: "test_upstream_proxy", readOnly: false } },
  },
});
