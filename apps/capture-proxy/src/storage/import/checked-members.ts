import type { Failure, TlsInfo } from "@headworks/capture-contract";

/** A member has the wrong type; the message names its path. */
export class MemberError extends Error {
  override readonly name = "MemberError";
}

/** Type-checked access to an object of a foreign document. Null equals absent. */
export class CheckedMembers {
  readonly #members: Readonly<Record<string, unknown>>;
  readonly #path: string;

  /** Throws {@link MemberError} unless the value is an object. `path` is used in errors. */
  constructor(value: unknown, path: string) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new MemberError(`${path === "" ? "it" : `\`${path}\``} is not an object`);
    }
    this.#members = value as Readonly<Record<string, unknown>>;
    this.#path = path;
  }

  has(name: string): boolean {
    return this.raw(name) !== null;
  }

  /** True for null, too. */
  holds(name: string): boolean {
    return Object.hasOwn(this.#members, name);
  }

  /** Own members only: documents must not reach inherited properties. */
  raw(name: string): unknown {
    return Object.hasOwn(this.#members, name) ? (this.#members[name] ?? null) : null;
  }

  object(name: string): CheckedMembers | null {
    return this.has(name) ? new CheckedMembers(this.raw(name), this.#pathOf(name)) : null;
  }

  text(name: string): string {
    return this.optionalText(name) ?? this.#fail(name, "is missing");
  }

  optionalText(name: string, maxLength = Number.MAX_SAFE_INTEGER): string | null {
    const value = this.raw(name);
    if (value === null) return null;
    if (typeof value !== "string") return this.#fail(name, "is not text");
    if (value.length > maxLength) return this.#fail(name, `has more than ${maxLength} characters`);
    return value;
  }

  boolean(name: string): boolean {
    const value = this.raw(name) ?? false;
    return typeof value === "boolean" ? value : this.#fail(name, "is not true or false");
  }

  /** A non-negative integer. */
  whole(name: string): number | null {
    const value = this.raw(name);
    if (value === null || (typeof value === "number" && Number.isSafeInteger(value) && value >= 0)) return value;
    return this.#fail(name, "is not a whole number");
  }

  /** Any integer, for identifiers. */
  integer(name: string): number | null {
    const value = this.raw(name);
    if (value === null || (typeof value === "number" && Number.isSafeInteger(value))) return value;
    return this.#fail(name, "is not a whole number");
  }

  /** A duration. */
  milliseconds(name: string): number | null {
    const value = this.raw(name);
    if (value === null || (typeof value === "number" && value >= 0 && value <= 1e12)) return value;
    return this.#fail(name, "is not a number of milliseconds");
  }

  oneOf<T extends string>(name: string, names: readonly T[]): T | null {
    const value = this.raw(name);
    if (value === null) return null;
    return names.find((known) => known === value) ?? this.#fail(name, `is not one of ${names.join(", ")}`);
  }

  array(name: string): readonly unknown[] | null {
    const value = this.raw(name);
    if (value === null) return null;
    return Array.isArray(value) ? (value as readonly unknown[]) : this.#fail(name, "is not an array");
  }

  /** Throws an error that names the member. */
  refuse(name: string, why: string): never {
    return this.#fail(name, why);
  }

  #fail(name: string, why: string): never {
    throw new MemberError(`\`${this.#pathOf(name)}\` ${why}`);
  }

  #pathOf(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }
}

const STAGES: readonly Failure["stage"][] = [
  "resolve",
  "connect",
  "proxy-handshake",
  "tls",
  "send",
  "receive",
  "client-read",
  "client-write",
  "policy",
];
const SIDES: readonly Failure["side"][] = ["client", "upstream", "internal"];

export function checkedFailure(members: CheckedMembers | null): Failure | null {
  return (
    members && {
      stage: members.oneOf("stage", STAGES) ?? "receive",
      side: members.oneOf("side", SIDES) ?? "internal",
      code: members.optionalText("code", 64) ?? "INTERNAL",
      message: members.optionalText("message", 65_536) ?? "",
    }
  );
}

export function checkedTls(members: CheckedMembers | null): TlsInfo | null {
  if (members === null) return null;
  const text = (name: string): string | null => members.optionalText(name, 65_536);
  return {
    client_version: text("client_version"),
    client_cipher: text("client_cipher"),
    sni: text("sni"),
    upstream_version: text("upstream_version"),
    upstream_cipher: text("upstream_cipher"),
    upstream_verified: members.has("upstream_verified") ? members.boolean("upstream_verified") : null,
    upstream_subject: text("upstream_subject"),
    upstream_issuer: text("upstream_issuer"),
    upstream_valid_to: text("upstream_valid_to"),
    upstream_client_certificate: members.oneOf("upstream_client_certificate", ["sent", "none"]),
  };
}
