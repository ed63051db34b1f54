import type { RouteTraffic } from "@headworks/gateway-contract";
import { AdminCallError, AdminClient, type AdminOptions } from "./admin-client.ts";
import { variable } from "./invocation.ts";
import { visibleText } from "./visible-text.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Recent traffic of the running gateway; an error message if it cannot be reached, undefined without `--admin` and
 * `GATEWAY_ADMIN`: the documents may belong to another gateway.
 */
export async function recentTraffic(
  options: AdminOptions,
  environment: Environment,
): Promise<RouteTraffic | string | undefined> {
  if (options.admin === undefined && variable(environment, "GATEWAY_ADMIN") === undefined) return undefined;
  try {
    const { text } = await new AdminClient(options, environment).call({ path: "/traffic" });
    return JSON.parse(text) as RouteTraffic;
  } catch (error) {
    if (error instanceof AdminCallError) return error.message;
    if (error instanceof SyntaxError) return "The response is not from a Sluice admin API";
    throw error;
  }
}

/** Maximum number of routes in a line. */
const MAX_ROUTES = 20;

/** `1204 requests in 3 min: home 62.5 %, more 0 %` for these routes, busiest first. */
export function shareText(names: readonly string[], { span_seconds: seconds, requests, routes }: RouteTraffic): string {
  const span = seconds < 60 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  if (requests === 0) return `no requests in ${span}`;
  const shares = new Map(routes.map(({ name, share }) => [name, share]));
  const shown = names
    .map((name) => ({ name, share: shares.get(name) ?? 0 }))
    .toSorted((a, b) => b.share - a.share)
    .map(({ name, share }) => `${visibleText(name)} ${Math.round(share * 1000) / 10} %`);
  const more = shown.length > MAX_ROUTES ? `, ${shown.length - MAX_ROUTES} more` : "";
  return `${requests} ${requests === 1 ? "request" : "requests"} in ${span}: ${shown.slice(0, MAX_ROUTES).join(", ")}${more}`;
}
