import type { NewRewriteRule, RewriteAction, TrafficEntry } from "@headworks/capture-contract";
import { echo, proxyClient, startOrigin, temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { Origin, OriginOptions, ProxyClient, TemporaryDirectory } from "@headworks/testkit";
import { pino } from "pino";
import { createProxy } from "#proxy.ts";
import type { RunningProxy } from "#proxy.ts";

/** A complete Weir with rewrite rules, and an origin. */
export interface RewritesRig {
  readonly proxy: RunningProxy;
  readonly origin: Origin;
  readonly client: ProxyClient;
  readonly data: TemporaryDirectory;
  /** Resets rules and settings, and replaces the origin's handler. */
  reset(handler?: OriginOptions["handler"]): Promise<void>;
  /** Calls the API; returns status and body. */
  api(method: string, path: string, body?: unknown): Promise<{ status: number; json: unknown }>;
  /** Creates a rule that matches everything unless `more` overrides it; returns its id. */
  rule(rewrites: RewriteAction | readonly RewriteAction[], more?: Partial<NewRewriteRule>): Promise<string>;
  /** The entry of the last request, after all were stored. */
  entry(): Promise<TrafficEntry>;
  /** Its trace, a line per rule and phase. */
  trace(): Promise<string[]>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startRewrites(): Promise<RewritesRig> {
  const data = await temporaryDirectory();
  let current: NonNullable<OriginOptions["handler"]> = echo;
  const origin = await startOrigin({ handler: (request, response) => current(request, response) });
  const proxy = await createProxy({
    dataDir: data.path,
    environment: {},
    flags: { "proxy-port": "0", "api-port": "0" },
    log: pino({ level: "silent" }),
  });
  const api: RewritesRig["api"] = async (method, path, body) => {
    const response = await fetch(`${proxy.addresses.api}/api${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, json: text === "" ? undefined : (JSON.parse(text) as unknown) };
  };
  const bare = proxyClient(Number(new URL(proxy.addresses.proxy).port));
  let fetched = 0;
  const client: ProxyClient = {
    ...bare,
    fetch(request) {
      fetched += 1;
      return bare.fetch(request);
    },
  };
  let seen = 0;
  const entry: RewritesRig["entry"] = async () => {
    let ids: { id: string; state: string }[] = [];
    await waitUntil(async () => {
      ids = (await api("GET", "/traffic")).json as typeof ids;
      return ids.length > seen && ids.length >= fetched && ids[0]?.state !== "pending";
    });
    seen = ids.length;
    return (await api("GET", `/traffic/${ids[0]?.id ?? ""}`)).json as TrafficEntry;
  };
  return {
    proxy,
    origin,
    client,
    data,
    async reset(handler = echo) {
      current = echo;
      for (const { id } of (await api("GET", "/rewrites")).json as { id: string }[]) {
        await api("DELETE", `/rewrites/${id}`);
      }
      await api("PATCH", "/config", {
        rewrite_body_limit: 10_485_760,
        rewrite_body_wait_ms: 30_000,
        map_file_dirs: [],
      });
      // Entries are stored in order of their end, so all older ones are stored, too.
      await bare.fetch(`${origin.url}/last-of-all`);
      await waitUntil(async () => {
        const [newest] = (await api("GET", "/traffic")).json as { state: string; request: { path: string } }[];
        return newest?.state === "complete" && newest.request.path === "/last-of-all";
      });
      await api("POST", "/traffic/clear");
      seen = 0;
      fetched = 0;
      current = handler;
    },
    api,
    async rule(rewrites, more = {}) {
      const { status, json } = await api("POST", "/rewrites", {
        name: "rule",
        condition: { type: "all" },
        direction: "both",
        rewrites: Array.isArray(rewrites) ? rewrites : [rewrites],
        ...more,
      });
      if (status !== 201) throw new Error(`The rule was refused: ${JSON.stringify(json)}`);
      return (json as { id: string }).id;
    },
    entry,
    async trace() {
      return (await entry()).trace.map(
        ({ rule_name: name, phase, changes }) => `${name} ${phase}: ${changes.join("; ")}`,
      );
    },
    async [Symbol.asyncDispose]() {
      await proxy.stop(0);
      await origin.close();
      await data.remove();
    },
  };
}
