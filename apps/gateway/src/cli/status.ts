import { EXIT } from "./invocation.ts";
import type { Online } from "./online-commands.ts";
import { painter, tableText, type Cell } from "./table.ts";

interface Upstream {
  readonly name: string;
  readonly breaker: { readonly state: string } | null;
  readonly endpoints: readonly {
    readonly endpoint: string;
    readonly health: string;
    readonly draining: boolean;
    readonly in_flight: number;
    readonly connections: number;
  }[];
}

/** `sluice status`: prints version, generation and all endpoints. */
export async function status({ client, invocation, isJson }: Online): Promise<number> {
  const { stdout, environment } = invocation;
  const [version, stats, list] = await Promise.all(
    ["/version", "/stats", "/upstreams"].map(async (path) => JSON.parse((await client.call({ path })).text) as object),
  );
  if (isJson) {
    stdout.write(`${JSON.stringify({ ...version, ...stats, ...list })}\n`);
    return EXIT.ok;
  }
  const facts = { ...version, ...stats } as Record<
    "version" | "uptime_seconds" | "config_generation" | "active_requests",
    unknown
  >;
  stdout.write(
    `Sluice ${String(facts.version)} at ${client.shown}, up ${duration(Number(facts.uptime_seconds))}\n` +
      `generation ${String(facts.config_generation)}, ${String(facts.active_requests)} requests under way\n`,
  );
  const { upstreams } = list as { upstreams: readonly Upstream[] };
  if (upstreams.length === 0) return EXIT.ok;
  const rows = upstreams.flatMap(({ name, breaker, endpoints }) =>
    endpoints.map((endpoint): readonly Cell[] => [
      name,
      breaker === null ? "" : { text: breaker.state, style: breaker.state === "closed" ? "green" : "red" },
      endpoint.endpoint,
      healthCell(endpoint.health, endpoint.draining),
      String(endpoint.in_flight),
      String(endpoint.connections),
    ]),
  );
  const head = ["upstream", "breaker", "endpoint", "health", "in flight", "connections"];
  stdout.write(`\n${tableText(head, rows, painter(stdout, environment), ["in flight", "connections"])}`);
  return EXIT.ok;
}

function healthCell(health: string, isDraining: boolean): Cell {
  if (isDraining) return { text: `${health}, draining`, style: "yellow" };
  return { text: health, style: health === "healthy" ? "green" : "red" };
}

function duration(seconds: number): string {
  const units = [
    ["d", 86_400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ] as const;
  const at = units.findIndex(([, size]) => seconds >= size);
  const parts = units.slice(at === -1 ? units.length - 1 : at).slice(0, 2);
  let left = seconds;
  return parts
    .map(([name, size]) => {
      const count = Math.floor(left / size);
      left -= count * size;
      return `${count} ${name}`;
    })
    .join(" ");
}
