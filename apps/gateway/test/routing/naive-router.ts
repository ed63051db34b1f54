import type { Match, Route } from "@headworks/gateway-contract";
import { fieldValue, fieldValues } from "@headworks/http1";
import type { RequestContext } from "#request/context.ts";

/** The rules of routing as they are written down, without a thought for speed: what the table must agree with. */
export function naiveRoute(all: readonly Route[], request: RequestContext): Route | undefined {
  const scheme = request.listener.isSecure ? "https" : "http";
  const own = all.filter(
    ({ match }) =>
      (match.listener ?? request.listener.name) === request.listener.name && (match.scheme ?? scheme) === scheme,
  );
  const asked = new Set(own.map(({ match }) => hostRank(match.host, request.authority)));
  for (const rank of [...asked].toSorted((one, two) => two - one)) {
    if (rank < 0) break;
    const routes = own.filter(({ match }) => hostRank(match.host, request.authority) === rank);
    const route = routeOfPath(routes, request.path);
    if (route !== undefined) return criteriaHold(route.match, request) ? route : undefined;
  }
  return undefined;
}

const tidy = (host: string): string =>
  host
    .toLowerCase()
    .replace(/\.(?=:|$)/u, "")
    .replace(/:$/u, "");

/** How specific a host is for a request; below zero where it is another one. */
function hostRank(host: string | undefined, authority: string | undefined): number {
  if (host === undefined || host === "*") return 0;
  if (authority === undefined) return -1;
  const name = tidy(authority).replace(/:\d+$/u, "");
  if (host.startsWith("*.")) return name.endsWith(tidy(host.slice(1))) ? host.length : -1;
  if (tidy(host) === name) return 1000;
  return tidy(host) === tidy(authority) ? 1001 : -1;
}

function routeOfPath(routes: readonly Route[], path: string): Route | undefined {
  const exact = routes.filter(({ match }) => match.path.type === "exact" && templateTakes(match.path.value, path));
  const statics = (route: Route): string =>
    route.match.path.value.replaceAll(/[^/]+/gu, (segment) => (segment.startsWith("{") ? "1" : "0"));
  // Static before parameter from left to right: sorting is stable, so equal templates stay in their order.
  const [best] = exact.toSorted((one, two) => (statics(one) < statics(two) ? -1 : statics(one) > statics(two) ? 1 : 0));
  return (
    best ??
    routes.find(({ match }) => match.path.type === "regex" && new RegExp(match.path.value, "u").test(path)) ??
    routes
      .filter(({ match }) => match.path.type === "prefix" && prefixTakes(match.path.value, path))
      .toSorted((one, two) => bare(two.match.path.value).length - bare(one.match.path.value).length)[0]
  );
}

function templateTakes(template: string, path: string): boolean {
  const wanted = template.split("/");
  const segments = path.split("/");
  return (
    wanted.length === segments.length &&
    wanted.every((each, index) => (each.startsWith("{") ? segments[index] !== "" : each === segments[index]))
  );
}

const bare = (prefix: string): string => prefix.replace(/\/+$/u, "");

function prefixTakes(prefix: string, path: string): boolean {
  return path === bare(prefix) || path.startsWith(`${bare(prefix)}/`);
}

function criteriaHold(match: Match, request: RequestContext): boolean {
  const { methods = [], headers = {}, query = [], cookies = [], accept } = match;
  const pairs = (list: readonly string[]): [string, string][] =>
    list.map((pair) => [pair.split("=", 1)[0] ?? "", pair.includes("=") ? pair.slice(pair.indexOf("=") + 1) : ""]);
  const has = (list: [string, string][], { name, value }: { name: string; value?: string }): boolean =>
    list.some(([each, text]) => each === name && (value === undefined || text === value));
  const sentCookies = fieldValues(request.fields, "cookie").flatMap((line) =>
    line.split(";").map((pair) => pair.trim()),
  );
  const accepted = fieldValues(request.fields, "accept").flatMap(
    (line) => line.match(/(?:[^,"]|"(?:\\.|[^"\\])*")+/gu) ?? [],
  );
  return (
    (methods.length === 0 || methods.some((method) => method.toUpperCase() === request.method.toUpperCase())) &&
    Object.entries(headers).every(([name, value]) => fieldValue(request.fields, name) === value) &&
    query.every((each) => request.query !== undefined && has(pairs(request.query.split("&")), each)) &&
    cookies.every((each) => has(pairs(sentCookies), each)) &&
    (accept === undefined ||
      accepted.some((each) => (each.split(";", 1)[0] ?? "").trim().toLowerCase() === accept.trim().toLowerCase()))
  );
}
