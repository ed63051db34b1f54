import type { Authorization } from "@headworks/gateway-contract";
import type { IpAddress } from "@headworks/host-patterns";
import type { ConsumerIdentity } from "#request/context.ts";
import { AddressSet } from "./address-set.ts";

/** Where a block stands, the most specific first. */
export type Level = "consumer" | "route" | "service" | "listener" | "gateway";

/** Who wants in. */
export interface Subject {
  readonly consumer: ConsumerIdentity | undefined;
  /** Undefined when it is no address; then no rule about addresses lets it in. */
  readonly address: IpAddress | undefined;
}

/** One block of rules, compiled. */
export class RuleBlock {
  readonly level: Level;
  /** Its rules are on trial: they are reported on and refuse nobody. */
  readonly isOnTrial: boolean;
  /** It says who may pass, and so decides for all less specific levels; a block that only denies leaves that to them. */
  readonly saysWho: boolean;
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
    this.isOnTrial = document.dry_run === true;
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
    this.saysWho = admitsConsumers || allows || acl.default !== undefined;
  }

  /** Whether a rule against the subject holds; what is unknown of it holds against nobody, except an address. */
  denies({ consumer, address }: Subject): boolean {
    if (this.asksForAddress && (address === undefined || this.#deniedAddresses?.has(address) === true)) return true;
    if (consumer === undefined) return false;
    return this.#deniedConsumers.has(consumer.name) || consumer.groups.some((group) => this.#deniedGroups.has(group));
  }

  /** Whether the rules about addresses let the subject in. */
  admitsAddress({ address }: Subject): boolean {
    if (!this.asksForAddress || this.#admitsOtherAddresses) return true;
    return address !== undefined && this.#allowedAddresses?.has(address) === true;
  }

  /** Whether all rules about consumers and their tokens are met. */
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

/** A list that names somebody is closed: nobody else gets in. */
function closedSet(names: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return names === undefined || names.length === 0 ? undefined : new Set(names);
}

function ownValue(claims: ConsumerIdentity["claims"], name: string): unknown {
  return claims !== undefined && Object.hasOwn(claims, name) ? claims[name] : undefined;
}

/** Scopes of a token: separated by spaces (RFC 8693 section 4.2), or a list as some issuers write it. */
function scopesOf(claim: unknown): readonly unknown[] {
  if (typeof claim === "string") return claim.split(" ");
  return Array.isArray(claim) ? claim : [];
}
