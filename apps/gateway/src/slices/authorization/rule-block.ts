import type { Authorization } from "@headworks/gateway-contract";
import type { IpAddress } from "@headworks/host-patterns";
import type { ConsumerIdentity } from "#request/context.ts";
import { AddressSet } from "./address-set.ts";

/** Most specific first. */
export type Level = "consumer" | "route" | "service" | "listener" | "gateway";

export interface Subject {
  readonly consumer: ConsumerIdentity | undefined;
  /** Undefined for an unparseable address, which no address rule admits. */
  readonly address: IpAddress | undefined;
}

export class RuleBlock {
  readonly level: Level;
  /** Dry run: its rules are reported but not enforced. */
  readonly isDryRun: boolean;
  /** Has allow rules and so decides for all less specific levels; a deny-only block defers to them. */
  readonly hasAllowRules: boolean;
  readonly asksForConsumer: boolean;
  readonly asksForAddress: boolean;
  readonly #deniedConsumers: ReadonlySet<string>;
  readonly #deniedGroups: ReadonlySet<string>;
  readonly #deniedAddresses: AddressSet | undefined;
  readonly #allowedConsumers: ReadonlySet<string> | undefined;
  readonly #allowedGroups: ReadonlySet<string> | undefined;
  readonly #scopes: readonly string[];
  readonly #claims: readonly (readonly [name: string, value: string])[];
  readonly #allowedAddresses: AddressSet | undefined;
  readonly #admitsOtherAddresses: boolean;

  constructor(level: Level, document: Authorization) {
    this.level = level;
    this.isDryRun = document.dry_run === true;
    this.#deniedConsumers = new Set(document.denied_consumers);
    this.#deniedGroups = new Set(document.denied_groups);
    this.#allowedConsumers = closedSet(document.allowed_consumers);
    this.#allowedGroups = closedSet(document.allowed_groups);
    this.#scopes = document.required_scopes ?? [];
    this.#claims = Object.entries(document.required_claims ?? {});
    const acl = document.ip_acl ?? {};
    const allows = (acl.allow ?? []).length > 0;
    this.asksForAddress = allows || (acl.deny ?? []).length > 0 || acl.default !== undefined;
    this.#deniedAddresses = (acl.deny ?? []).length > 0 ? new AddressSet(acl.deny ?? []) : undefined;
    this.#allowedAddresses = allows ? new AddressSet(acl.allow ?? []) : undefined;
    this.#admitsOtherAddresses = (acl.default ?? (allows ? "deny" : "allow")) === "allow";
    const admitsConsumers =
      (this.#allowedConsumers ?? this.#allowedGroups) !== undefined || this.#scopes.length + this.#claims.length > 0;
    this.asksForConsumer = admitsConsumers || this.#deniedConsumers.size + this.#deniedGroups.size > 0;
    this.hasAllowRules = admitsConsumers || allows || acl.default !== undefined;
  }

  /** True if a deny rule applies; unknown properties do not match, except an unknown address. */
  denies({ consumer, address }: Subject): boolean {
    if (this.asksForAddress && (address === undefined || this.#deniedAddresses?.has(address) === true)) return true;
    if (consumer === undefined) return false;
    return this.#deniedConsumers.has(consumer.name) || consumer.groups.some((group) => this.#deniedGroups.has(group));
  }

  admitsAddress({ address }: Subject): boolean {
    if (!this.asksForAddress || this.#admitsOtherAddresses) return true;
    return address !== undefined && this.#allowedAddresses?.has(address) === true;
  }

  /** True if all rules about consumers and tokens are met. */
  admitsConsumer(consumer: ConsumerIdentity): boolean {
    if (this.#allowedConsumers?.has(consumer.name) === false) return false;
    const groups = this.#allowedGroups;
    if (groups !== undefined && !consumer.groups.some((group) => groups.has(group))) return false;
    return this.#hasScopes(consumer) && this.#hasClaims(consumer);
  }

  #hasScopes({ claims }: ConsumerIdentity): boolean {
    if (this.#scopes.length === 0) return true;
    const scopes = scopesOf(ownValue(claims, "scope"));
    return this.#scopes.every((scope) => scopes.includes(scope));
  }

  #hasClaims({ claims }: ConsumerIdentity): boolean {
    return this.#claims.every(([name, expected]) => {
      const value = ownValue(claims, name);
      return typeof value === "number" ? String(value) === expected : value === expected;
    });
  }
}

/** An allow list excludes everyone not on it. */
function closedSet(names: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return names === undefined || names.length === 0 ? undefined : new Set(names);
}

function ownValue(claims: ConsumerIdentity["claims"], name: string): unknown {
  return claims !== undefined && Object.hasOwn(claims, name) ? claims[name] : undefined;
}

/** Scopes of a token: space-separated (RFC 8693 section 4.2), or a list as some issuers send it. */
function scopesOf(claim: unknown): readonly unknown[] {
  if (typeof claim === "string") return claim.split(" ");
  return Array.isArray(claim) ? claim : [];
}
