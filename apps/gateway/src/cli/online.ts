import type { RouteTraffic } from "@headworks/gateway-contract";
import { AdminCallError, type Online, parseExact } from "./admin-client.ts";
import { documentText, shareText } from "./documents.ts";
import { EXIT } from "./invocation.ts";
import { type Cell, painter, tableText, visibleText } from "./table.ts";

/** `sluice config get`: prints the running document or an earlier one. */
export async function get(generation: string | undefined, { client, invocation, isJson }: Online): Promise<number> {
  if (generation !== undefined && !isNumber(generation)) return notANumber(generation, invocation.stderr);
  const path = generation === undefined ? "/config" : `/config/generations/${generation}`;
  const { text } = await client.call({
    path,
    headers: { accept: isJson ? "application/json" : "application/yaml" },
  });
  invocation.stdout.write(text);
  return EXIT.ok;
}

export interface ApplyOptions {
  readonly dryRun?: boolean;
  readonly ifMatch?: string;
  readonly overwrite?: boolean;
}

/** `sluice config apply FILE`: publishes a document. */
export async function apply(file: string, options: ApplyOptions, online: Online): Promise<number> {
  const body = await documentText(file, online.invocation);
  if (body === undefined) return EXIT.failure;
  const query = new URLSearchParams();
  if (options.dryRun === true) query.set("dry_run", "true");
  if (options.overwrite === true) query.set("overwrite", "true");
  const { text } = await online.client.call({
    method: "PUT",
    path: query.size === 0 ? "/config" : `/config?${query.toString()}`,
    headers: {
      "content-type": "application/yaml",
      ...(options.ifMatch === undefined ? {} : { "if-match": options.ifMatch }),
    },
    body,
  });
  showPublished(text, options.dryRun === true ? "would be published as" : "published as", online);
  return EXIT.ok;
}

/** `sluice config rollback N`: publishes generation N again. */
export async function rollback(
  generation: string,
  { overwrite = false }: Pick<ApplyOptions, "overwrite">,
  online: Online,
): Promise<number> {
  if (!isNumber(generation)) return notANumber(generation, online.invocation.stderr);
  const { text } = await online.client.call({
    method: "POST",
    path: overwrite ? "/config/rollback?overwrite=true" : "/config/rollback",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ generation: Number(generation) }),
  });
  showPublished(text, "published as", online);
  return EXIT.ok;
}

/** `sluice config history`: lists published generations. */
export async function history({ client, invocation, isJson }: Online): Promise<number> {
  const { stdout, environment } = invocation;
  const { text } = await client.call({ path: "/config/generations?limit=100" });
  if (isJson) {
    stdout.write(`${text}\n`);
    return EXIT.ok;
  }
  const { generations } = JSON.parse(text) as {
    generations: readonly {
      readonly generation: number;
      readonly route_count: number;
      readonly published_at: string;
      readonly source: string;
      readonly actor: string | null;
      readonly is_running: boolean;
    }[];
  };
  const rows = generations.map((one) => [
    {
      text: `${one.generation}${one.is_running ? " (running)" : ""}`,
      style: one.is_running ? ("green" as const) : undefined,
    },
    `${one.published_at.slice(0, 19)}Z`,
    String(one.route_count),
    one.source,
    one.actor ?? "",
  ]);
  const head = ["generation", "published", "routes", "source", "by"];
  stdout.write(tableText(head, rows, painter(stdout, environment), ["routes"]));
  return EXIT.ok;
}

interface Published {
  readonly generation: number;
  readonly route_count: number;
  readonly warnings: readonly { readonly message: string; readonly code: string; readonly path: string }[];
  readonly affected?: RouteTraffic;
  readonly changes?: readonly { readonly kind: string; readonly name: string; readonly change: string }[];
}

function showPublished(text: string, how: string, { invocation, isJson }: Online): void {
  const { stdout, stderr } = invocation;
  if (isJson) return void stdout.write(`${text}\n`);
  const { generation, route_count: routes, warnings, changes = [], affected } = JSON.parse(text) as Published;
  for (const { message, code } of warnings) stderr.write(`warning: ${visibleText(message)} [${code}]\n`);
  for (const { kind, name, change } of changes) stdout.write(`${SIGNS[change] ?? "~"} ${kind} ${visibleText(name)}\n`);
  if (changes.length === 0) stdout.write("no differences\n");
  if (affected !== undefined && affected.requests > 0 && affected.routes.length > 0) {
    const names = affected.routes.map(({ name }) => name);
    stdout.write(`${shareText(names, affected)}\n`);
  }
  stdout.write(`${how} generation ${generation}, ${routes} ${routes === 1 ? "route" : "routes"}\n`);
}

const SIGNS: Readonly<Record<string, string>> = { added: "+", removed: "-", changed: "~", moved: ">" };
const isNumber = (text: string): boolean => /^[1-9][0-9]{0,9}$/.test(text);

function notANumber(text: string, stderr: { write(text: string): unknown }): number {
  stderr.write(`sluice: ${JSON.stringify(text)} is not the number of a generation\n`);
  return EXIT.warnings;
}

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
      `generation ${String(facts.config_generation)}, ${String(facts.active_requests)} requests in progress\n`,
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

type Count = number | bigint;

interface UsageRecord {
  readonly consumers: readonly {
    readonly consumer: string;
    readonly synced: boolean;
    readonly budgets: readonly {
      readonly budget: string;
      readonly limit: Count;
      readonly used: Count;
      readonly remaining: Count;
      readonly reset_epoch_s: number;
    }[];
  }[];
}

/** `sluice quota [consumer]`: prints budgets and what remains of them. */
export async function quota(consumer: string | undefined, online: Online): Promise<number> {
  const query = consumer === undefined ? "" : `?consumer=${encodeURIComponent(consumer)}`;
  const { text } = await online.client.call({ path: `/quotas/usage${query}` });
  showBudgets(text, online);
  return EXIT.ok;
}

/** The unparsed arguments. */
interface Adjustment {
  readonly consumer: string;
  readonly budget: string;
  readonly delta: string;
  readonly reason: string;
}

/** `sluice quota adjust`: corrects a counter and prints the consumer's budgets. */
export async function adjust({ consumer, budget, delta, reason }: Adjustment, online: Online): Promise<number> {
  const { stderr } = online.invocation;
  if (!/^[+-]?[0-9]{1,16}$/.test(delta) || !Number.isSafeInteger(Number(delta))) {
    stderr.write(`sluice: ${JSON.stringify(delta)} is not a number of requests\n`);
    return EXIT.warnings;
  }
  if (budget !== "daily" && budget !== "monthly") {
    stderr.write(`sluice: a budget is daily or monthly, not ${JSON.stringify(budget)}\n`);
    return EXIT.warnings;
  }
  const { text } = await online.client.call({
    method: "POST",
    path: "/quotas/adjust",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ consumer, budget, delta: Number(delta), reason }),
  });
  showBudgets(text, online);
  return EXIT.ok;
}

function showBudgets(text: string, { invocation, isJson }: Online): void {
  const { stdout, environment } = invocation;
  if (isJson) return void stdout.write(`${text}\n`);
  const { consumers } = parseExact(text) as UsageRecord;
  if (consumers.length === 0) return void stdout.write("No consumer has quotas\n");
  const rows = consumers.flatMap(({ consumer, synced, budgets }): readonly (readonly Cell[])[] =>
    synced
      ? budgets.map(({ budget, used, limit, remaining, reset_epoch_s }) => [
          consumer,
          budget,
          String(used),
          String(limit),
          { text: String(remaining), style: BigInt(remaining) === 0n ? "red" : undefined },
          `${new Date(reset_epoch_s * 1000).toISOString().slice(0, 16)}Z`,
        ])
      : [[consumer, { text: "not counted yet", style: "yellow" }, "", "", "", ""]],
  );
  const head = ["consumer", "budget", "used", "limit", "remaining", "resets"];
  stdout.write(tableText(head, rows, painter(stdout, environment), ["used", "limit", "remaining"]));
}

interface Event {
  readonly id: string;
  readonly kind: string;
  readonly timestamp: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** `sluice events [--follow]`: prints past events of a gateway, and new ones. */
export async function events(options: { follow?: boolean; limit: string }, online: Online): Promise<number> {
  const { client, invocation } = online;
  if (!/^(?:[1-9][0-9]{0,2}|1000)$/.test(options.limit)) {
    invocation.stderr.write(`sluice: --limit takes 1 to 1000, not ${JSON.stringify(options.limit)}\n`);
    return EXIT.warnings;
  }
  const { text } = await client.call({ path: `/events?limit=${options.limit}` });
  const past = (JSON.parse(text) as { events: readonly Event[] }).events.toReversed();
  for (const event of past) printEvent(event, online);
  if (options.follow !== true) return EXIT.ok;
  const since = past.at(-1)?.id;
  const query = since === undefined ? "" : `?since=${encodeURIComponent(since)}`;
  const stream = await client.stream({ path: `/events/stream${query}` });
  try {
    for await (const event of eventsOf(stream.setEncoding("utf8"))) printEvent(event, online);
  } catch (error) {
    throw new AdminCallError("The connection to the gateway broke", { cause: error });
  }
  throw new AdminCallError("The gateway ended the stream");
}

/** Parses server-sent events in the form this server sends them: one data line each. */
async function* eventsOf(stream: AsyncIterable<string>): AsyncGenerator<Event> {
  let waiting = "";
  for await (const piece of stream) {
    const lines = (waiting + piece).split("\n");
    waiting = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6)) as Event;
  }
}

function printEvent(event: Event, { invocation, isJson }: Online): void {
  const { stdout, environment } = invocation;
  if (isJson) return void stdout.write(`${JSON.stringify(event)}\n`);
  const paint = painter(stdout, environment);
  const facts = Object.entries(event.payload).map(([name, value]) => `${name}=${String(value)}`);
  const style = BAD.has(event.kind) ? "red" : "green";
  const kind = paint(style, visibleText(event.kind).padEnd(18));
  stdout.write(`${paint("dim", event.timestamp)}  ${kind}  ${visibleText(facts.join(" "))}\n`);
}

const BAD = new Set(["breaker_opened", "endpoint_ejected", "config_rejected"]);
