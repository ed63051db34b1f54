import type { Authorization, ConfigDocument } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import { suggestion } from "./nearest-name.ts";
import type { FieldPath } from "./pointer.ts";

type Kind = "listener" | "upstream" | "service" | "route" | "consumer" | "policy" | "provider" | "group";

const LISTS: Readonly<Record<string, Kind>> = {
  listeners: "listener",
  upstreams: "upstream",
  services: "service",
  consumers: "consumer",
  policies: "policy",
};

/**
 * Names are unique and references resolve; unused entities are warnings. `unread` are JSON pointers of unreadable
 * values: a reference whose target may be among them is not reported.
 */
export function checkReferences(document: ConfigDocument, report: IssueReport, unread: ReadonlySet<string>): void {
  const names = new Names(report, kindsLosingNames(unread));
  names.declare("listener", document.listeners, ["listeners"]);
  names.declare("upstream", document.upstreams, ["upstreams"]);
  names.declare("service", document.services, ["services"]);
  names.declare("route", document.routes, ["routes"]);
  names.declare("consumer", document.consumers, ["consumers"]);
  names.declare("policy", document.policies, ["policies"]);
  names.declare("provider", document.gateway.jwt_providers ?? [], ["gateway", "jwt_providers"]);
  names.declare("provider", document.gateway.oidc_providers ?? [], ["gateway", "oidc_providers"]);
  for (const { groups } of document.consumers) for (const group of groups ?? []) names.known("group").add(group);
  referTo(document, names);
  warnOfUnused(document, names, report);
}

function kindsLosingNames(unread: ReadonlySet<string>): ReadonlySet<Kind> {
  const kinds = new Set<Kind>();
  for (const path of unread) {
    const kind = LISTS[/^\/(\w+)(?:\/\d+(?:\/name)?)?$/.exec(path)?.[1] ?? ""];
    if (kind !== undefined) kinds.add(kind);
    if (/^\/consumers(?:\/\d+(?:\/groups(?:\/\d+)?)?)?$/.test(path)) kinds.add("group");
  }
  return kinds;
}

/** Name comparisons for suggestions; about 10 µs each. */
const MAX_COMPARISONS = 10_000;

class Names {
  readonly #report: IssueReport;
  readonly #known = new Map<Kind, Set<string>>();
  readonly #used = new Map<Kind, Set<string>>();
  readonly #losing: ReadonlySet<Kind>;
  #comparisons = MAX_COMPARISONS;

  constructor(report: IssueReport, losing: ReadonlySet<Kind>) {
    this.#report = report;
    this.#losing = losing;
  }

  known(kind: Kind): Set<string> {
    return setOf(this.#known, kind);
  }

  isUsed(kind: Kind, name: string): boolean {
    return this.#used.get(kind)?.has(name) === true;
  }

  declare(kind: Kind, entities: readonly { readonly name: string }[], section: FieldPath): void {
    const known = this.known(kind);
    for (const [at, { name }] of entities.entries()) {
      if (known.has(name)) {
        this.#report.error("duplicate_name", [...section, at, "name"], `Another ${kind} is named "${name}" already`);
      }
      known.add(name);
    }
  }

  refer(kind: Kind, name: string | undefined, fieldPath: FieldPath): void {
    if (name === undefined) return;
    setOf(this.#used, kind).add(name);
    const known = this.known(kind);
    if (known.has(name) || this.#losing.has(kind)) return;
    const missing = kind === "group" ? "No consumer is in the group" : `There is no ${kind}`;
    this.#report.error("unknown_reference", fieldPath, `${missing} "${name}"${this.#suggestion(name, known)}`);
  }

  /** Comparing tens of thousands of wrong names with as many right ones takes minutes. */
  #suggestion(name: string, known: ReadonlySet<string>): string {
    if (known.size > this.#comparisons) return "";
    this.#comparisons -= known.size;
    return suggestion(name, known);
  }

  referAll(kind: Kind, names: readonly string[] | undefined, fieldPath: FieldPath): void {
    for (const [at, name] of (names ?? []).entries()) this.refer(kind, name, [...fieldPath, at]);
  }

  authorization(block: Authorization | undefined, fieldPath: FieldPath): void {
    if (block === undefined) return;
    this.referAll("consumer", block.allowed_consumers, [...fieldPath, "allowed_consumers"]);
    this.referAll("consumer", block.denied_consumers, [...fieldPath, "denied_consumers"]);
    this.referAll("group", block.allowed_groups, [...fieldPath, "allowed_groups"]);
    this.referAll("group", block.denied_groups, [...fieldPath, "denied_groups"]);
  }
}

function setOf(sets: Map<Kind, Set<string>>, kind: Kind): Set<string> {
  let found = sets.get(kind);
  if (found === undefined) sets.set(kind, (found = new Set()));
  return found;
}

function referTo(document: ConfigDocument, names: Names): void {
  const { gateway } = document;
  names.referAll("policy", gateway.global_policies, ["gateway", "global_policies"]);
  names.authorization(gateway.authorization, ["gateway", "authorization"]);
  for (const list of ["jwt_providers", "oidc_providers"] as const) {
    for (const [at, { consumer }] of (gateway[list] ?? []).entries()) {
      names.refer("consumer", consumer, ["gateway", list, at, "consumer"]);
    }
  }
  for (const [at, { service, match }] of document.routes.entries()) {
    names.refer("service", service, ["routes", at, "service"]);
    names.refer("listener", match.listener, ["routes", at, "match", "listener"]);
  }
  for (const [at, service] of document.services.entries()) {
    names.refer("upstream", service.upstream, ["services", at, "upstream"]);
    for (const [index, { upstream }] of (service.split?.targets ?? []).entries()) {
      names.refer("upstream", upstream, ["services", at, "split", "targets", index, "upstream"]);
    }
  }
  for (const section of ["listeners", "services", "routes", "consumers"] as const) {
    for (const [at, { policies, authorization }] of document[section].entries()) {
      names.referAll("policy", policies, [section, at, "policies"]);
      names.authorization(authorization, [section, at, "authorization"]);
    }
  }
}

function warnOfUnused(document: ConfigDocument, names: Names, report: IssueReport): void {
  const warn = (fieldPath: FieldPath, message: string): void => report.warning("unused", fieldPath, message);
  for (const [at, { name }] of document.upstreams.entries()) {
    if (!names.isUsed("upstream", name)) warn(["upstreams", at], `No service uses the upstream "${name}"`);
  }
  for (const [at, { name }] of document.services.entries()) {
    if (!names.isUsed("service", name)) warn(["services", at], `No route uses the service "${name}"`);
  }
  for (const [at, { name }] of document.policies.entries()) {
    if (!names.isUsed("policy", name)) warn(["policies", at], `Nothing uses the policy "${name}"`);
  }
  for (const [at, { name, credentials = [] }] of document.consumers.entries()) {
    if (credentials.length > 0 || names.isUsed("consumer", name)) continue;
    warn(["consumers", at], `The consumer "${name}" has no credentials, so no request is ever recognised as its own`);
  }
}
