import { canonicalHost, parseAddress, parseHostPort } from "@headworks/host-patterns";
import type { ConfigDocument, Route, Service, Upstream } from "@headworks/gateway-contract";
import { isRemovedFromClients, mayCarryRequestId } from "#request/forwarding-rules.ts";
import type { IssueReport } from "#slice.ts";
import type { FieldPath } from "./pointer.ts";

/** Constraints on routes, services, upstreams, consumers and the gateway that the schema cannot express. */
export function checkEntities(document: ConfigDocument, report: IssueReport): void {
  document.routes.forEach((route, at) => checkRoute(route, ["routes", at], report));
  document.services.forEach((service, at) => checkService(service, ["services", at], report));
  document.upstreams.forEach((upstream, at) => checkUpstream(upstream, ["upstreams", at], report));
  checkCertificateCredentials(document, report);
  const { gateway } = document;
  if (gateway.load_shed_dry_run === true && gateway.max_concurrent_requests === undefined) {
    const message = "load_shed_dry_run has no effect without max_concurrent_requests; set it, or remove this setting";
    report.error("required", ["gateway", "load_shed_dry_run"], message);
  }
  if (gateway.admission_queue?.enabled === true && gateway.max_concurrent_requests === undefined) {
    const message = "admission_queue has no effect without max_concurrent_requests; set it, or remove this setting";
    report.error("required", ["gateway", "admission_queue"], message);
  }
  const { request_id_header: idField, forward_client_headers: passing = [] } = gateway;
  if (idField !== undefined && !mayCarryRequestId(idField)) {
    const message = `${idField} has another meaning, so it cannot carry the request id`;
    report.error("bad_value", ["gateway", "request_id_header"], message);
  }
  for (const [at, name] of passing.entries()) {
    if (isRemovedFromClients(name)) continue;
    const message = `${name} is not a removed header: the gateway writes it itself or forwards it anyway`;
    report.error("bad_value", ["gateway", "forward_client_headers", at], message);
  }
  if (document.routes.length === 0 && gateway.allow_empty_routes !== true) {
    report.warning("empty_routes", [], "There is no route, so every request gets 404");
  }
}

function checkRoute(route: Route, fieldPath: FieldPath, report: IssueReport): void {
  if (route.action.type === "proxy" && route.service === undefined) {
    report.error("required", [...fieldPath, "service"], `The route "${route.name}" proxies, so it needs a service`);
  }
}

function checkService(service: Service, fieldPath: FieldPath, report: IssueReport): void {
  const title = `The service "${service.name}"`;
  const { upstream, split, upstream_host: host } = service;
  if (host !== undefined) checkUpstreamHost(host, title, [...fieldPath, "upstream_host"], report);
  if (upstream === undefined && split === undefined) {
    report.error("required", [...fieldPath, "upstream"], `${title} needs an upstream, or a split over several`);
  }
  if (upstream !== undefined && split !== undefined) {
    report.error("bad_value", [...fieldPath, "split"], `${title} has an upstream and a split; keep one of them`);
  }
  if (split === undefined) return;
  const seen = new Set<string>();
  for (const [at, target] of split.targets.entries()) {
    if (seen.has(target.upstream)) {
      const message = `The split of "${service.name}" names the upstream "${target.upstream}" twice`;
      report.error("duplicate_name", [...fieldPath, "split", "targets", at, "upstream"], message);
    }
    seen.add(target.upstream);
  }
  if (split.targets.every(({ weight = 1 }) => weight === 0)) {
    const message = `The split of "${service.name}" has no weight above 0, so no upstream would get requests`;
    report.error("out_of_range", [...fieldPath, "split", "targets"], message);
  }
}

function checkUpstream(upstream: Upstream, fieldPath: FieldPath, report: IssueReport): void {
  const title = `The upstream "${upstream.name}"`;
  const { endpoints = [], load_balancer: balancer, hash_header: hashHeader } = upstream;
  if (endpoints.length === 0 && upstream.dns_discovery === undefined) {
    report.error("required", [...fieldPath, "endpoints"], `${title} needs at least one endpoint, or dns_discovery`);
  }
  const { upstream_host: host, active_health: active } = upstream;
  if (host !== undefined) checkUpstreamHost(host, title, [...fieldPath, "upstream_host"], report);
  if (active?.host !== undefined && hostProblem(active.host) !== undefined) {
    report.error(
      "bad_value",
      [...fieldPath, "active_health", "host"],
      `The host of active_health must be ${hostProblem(active.host)}`,
    );
  }
  const name = upstream.tls?.server_name;
  if (name !== undefined && !isHostName(name)) {
    const message = `${title} has a server_name that is invalid in TLS: it must be a host name without a port`;
    report.error("bad_value", [...fieldPath, "tls", "server_name"], message);
  }
  const seen = new Set<string>();
  for (const [at, { address, port }] of endpoints.entries()) {
    const own = [...fieldPath, "endpoints", at];
    const text = `${address}:${port}`;
    if (!isHost(address)) {
      const message = `${title} has an endpoint whose address is no IP address or host name; set the port in its own field`;
      report.error("bad_value", [...own, "address"], message);
    }
    const key = `${canonicalHost(address)} ${port}`;
    if (seen.has(key)) report.error("duplicate_name", own, `${title} has the endpoint ${text} twice`);
    seen.add(key);
  }
  if (balancer === "header_hash" && hashHeader === undefined) {
    report.error(
      "required",
      [...fieldPath, "hash_header"],
      `${title} balances by header_hash, so it needs hash_header`,
    );
  }
  if (balancer !== "header_hash" && hashHeader !== undefined) {
    report.error(
      "bad_value",
      [...fieldPath, "hash_header"],
      `${title} has hash_header, which only header_hash looks at`,
    );
  }
  checkRelations(upstream, fieldPath, report);
}

/** Words of other gateways for the client's host and for the endpoint's name. */
const OTHER_WORDS: Readonly<Record<string, "preserve" | "endpoint">> = {
  pass: "preserve",
  host: "preserve",
  true: "preserve",
  $host: "preserve",
  $http_host: "preserve",
  "{host}": "preserve",
  "{http.request.host}": "preserve",
  node: "endpoint",
  upstream: "endpoint",
  false: "endpoint",
  $proxy_host: "endpoint",
  "{upstream_hostport}": "endpoint",
  "{http.reverse_proxy.upstream.hostport}": "endpoint",
};

function isHostName(text: string): boolean {
  const parsed = parseHostPort(text);
  return !("issue" in parsed) && parsed.port === undefined && parseAddress(canonicalHost(parsed.host)) === undefined;
}

/** Completes "must be …"; undefined for a valid host. */
function hostProblem(text: string): string | undefined {
  return "issue" in parseHostPort(text) ? "a host name or an address, with a port or without" : undefined;
}

function checkUpstreamHost(text: string, title: string, fieldPath: FieldPath, report: IssueReport): void {
  if (text === "preserve" || text === "endpoint") return;
  const problem = hostProblem(text);
  const meant = Object.hasOwn(OTHER_WORDS, text.toLowerCase()) ? OTHER_WORDS[text.toLowerCase()] : undefined;
  const hint = meant === undefined ? "" : `. Did you mean "${meant}"?`;
  if (problem !== undefined) {
    report.error(
      "bad_value",
      fieldPath,
      `${title} has an upstream_host that must be preserve, endpoint, or ${problem}${hint}`,
    );
  } else if (meant !== undefined) {
    report.warning("bad_value", fieldPath, `${title} asks its endpoints for a host that is called "${text}"${hint}`);
  }
}

/** Constraints between several numbers; omitted fields count with their defaults. */
function checkRelations(upstream: Upstream, fieldPath: FieldPath, report: IssueReport): void {
  const { active_health: active, retries } = upstream;
  const atLeast = (field: FieldPath, value: number, other: string, min: number): void => {
    if (value >= min) return;
    const message = `${field.slice(-1).join("")} of the upstream "${upstream.name}" must be at least ${other}: it is ${value}, and ${other} is ${min}`;
    report.error("out_of_range", [...fieldPath, ...field], message);
  };
  if (active !== undefined) {
    const { interval_ms = 5000, timeout_ms = 2000, jitter_ms = 500 } = active;
    atLeast(["active_health", "interval_ms"], interval_ms, "timeout_ms", timeout_ms);
    atLeast(["active_health", "interval_ms"], interval_ms, "jitter_ms", jitter_ms);
    if (upstream.health === undefined) {
      const message = `The upstream "${upstream.name}" has active_health, which needs health; "health: {}" takes the defaults`;
      report.error("required", [...fieldPath, "health"], message);
    }
  }
  if (retries !== undefined) {
    const { backoff_base_ms = 25, backoff_cap_ms = 250, buffer_max_bytes = 0 } = retries;
    atLeast(["retries", "backoff_cap_ms"], backoff_cap_ms, "backoff_base_ms", backoff_base_ms);
    if (retries.hedge !== undefined && buffer_max_bytes === 0) {
      const message = `Hedging of the upstream "${upstream.name}" needs retries.buffer_max_bytes above 0`;
      report.error("required", [...fieldPath, "retries", "buffer_max_bytes"], message);
    }
  }
}

/** Resolvers parse a name with a numeric last label as an IPv4 address, and this one is invalid. */
function isHost(text: string): boolean {
  const host = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  if (parseAddress(host) !== undefined) return true;
  const name = canonicalHost(text);
  return (
    name.length <= 253 && !/(?:^|\.)[0-9]+$/.test(name) && /^(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/.test(name)
  );
}

function checkCertificateCredentials(document: ConfigDocument, report: IssueReport): void {
  for (const [at, { name, credentials = [] }] of document.consumers.entries()) {
    for (const [index, credential] of credentials.entries()) {
      if (credential.type !== "mtls") continue;
      if ((credential.subject === undefined) !== (credential.fingerprint === undefined)) continue;
      const message = `A credential of the type mtls of "${name}" needs exactly one of subject and fingerprint`;
      const code = credential.subject === undefined ? "required" : "bad_value";
      report.error(code, ["consumers", at, "credentials", index], message);
    }
  }
}
