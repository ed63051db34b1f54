import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { proxyClient, startOrigin, temporaryDirectory } from "@headworks/testkit";
import type { Origin, ProxiedRequest, ProxyClient } from "@headworks/testkit";
import type { MockRule } from "@headworks/capture-contract";
import type { RequestListener } from "node:http";
import { pino } from "pino";
import { createProxy } from "#proxy.ts";
import type { RunningProxy } from "#proxy.ts";

/** A complete Weir in this process, and an origin. */
export interface MocksRig {
  readonly proxy: RunningProxy;
  readonly client: ProxyClient;
  readonly origin: Origin;
  readonly dataDir: string;
  /** The origin's handler. */
  handler: RequestListener;
  api(method: string, path: string, body?: unknown): Promise<{ status: number; json: unknown }>;
  mock(body: object): Promise<string>;
  rule(id: string): Promise<MockRule>;
  get(request: string | ProxiedRequest): Promise<{ status: number; text: string }>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startMocksRig(flags: Record<string, string> = {}, keptDir?: string): Promise<MocksRig> {
  const directory = await temporaryDirectory();
  const dataDir = keptDir ?? directory.path;
  const proxy = await createProxy({
    dataDir,
    environment: {},
    flags: { "proxy-port": "0", "api-port": "0", ...flags },
    log: pino({ level: "silent" }),
  });
  const origin = await startOrigin({ handler: (request, response) => rig.handler(request, response) });
  const client = proxyClient(Number(new URL(proxy.addresses.proxy).port), {
    ca: readFileSync(proxy.certificatePath, "utf8"),
  });
  const api: MocksRig["api"] = async (method, path, body) => {
    const response = await fetch(`${proxy.addresses.api}/api${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, json: text === "" ? undefined : (JSON.parse(text) as unknown) };
  };
  const rig: MocksRig = {
    proxy,
    client,
    origin,
    dataDir,
    handler: (_request, response) => void response.end("from the origin"),
    api,
    mock: async (body) => {
      const { status, json } = await api("POST", "/mocks", body);
      assert.equal(status, 201, JSON.stringify(json));
      return (json as { id: string }).id;
    },
    rule: async (id) => (await api("GET", `/mocks/${id}`)).json as MockRule,
    get: async (request) => {
      const response = await client.fetch(request);
      return { status: response.status, text: response.body.toString() };
    },
    [Symbol.asyncDispose]: async () => {
      await proxy.stop(0);
      await origin[Symbol.asyncDispose]();
      await directory.remove();
    },
  };
  return rig;
}
