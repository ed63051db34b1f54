import type { RouteTraffic } from "@headworks/gateway-contract";
import { documentText } from "./document-file.ts";
import { EXIT } from "./invocation.ts";
import type { Online } from "./online-commands.ts";
import { shareText } from "./recent-traffic.ts";
import { painter, tableText } from "./table.ts";
import { visibleText } from "./visible-text.ts";

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
  show(text, options.dryRun === true ? "would be published as" : "published as", online);
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
  show(text, "published as", online);
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
      text: `${one.generation}${one.is_running ? " (runs)" : ""}`,
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

function show(text: string, how: string, { invocation, isJson }: Online): void {
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
  stderr.write(`sluice: ${JSON.stringify(text)} is no number of a generation\n`);
  return EXIT.warnings;
}
