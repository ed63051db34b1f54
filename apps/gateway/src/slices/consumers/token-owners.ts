import type { Consumer, JwtProvider } from "@headworks/gateway-contract";
import type { ConsumerIdentity } from "#request/context.ts";
import { credentialsOf, identityOf } from "./consumer-identity.ts";

interface TokenOwner {
  /** Empty: any audience. */
  readonly audiences: readonly string[];
  readonly identity: ConsumerIdentity;
}

/** Maps a verified token to a consumer: its provider's, or the one with a credential of its issuer. */
export class TokenOwners {
  readonly #byName = new Map<string, ConsumerIdentity>();
  readonly #byIssuer = new Map<string, TokenOwner[]>();

  constructor(consumers: readonly Consumer[]) {
    for (const consumer of consumers) this.#byName.set(consumer.name, identityOf(consumer, "jwt"));
    for (const { consumer, credential } of credentialsOf(consumers, "jwt")) {
      const owners = this.#byIssuer.get(credential.issuer) ?? [];
      owners.push({ audiences: credential.audiences ?? [], identity: identityOf(consumer, "jwt") });
      this.#byIssuer.set(credential.issuer, owners);
    }
    for (const owners of this.#byIssuer.values()) {
      // Credentials with a named audience take precedence.
      owners.sort((a, b) => Number(a.audiences.length === 0) - Number(b.audiences.length === 0));
    }
  }

  /** The consumer, without claims; undefined for a valid token without a consumer. */
  find(provider: Pick<JwtProvider, "consumer">, issuer: unknown, audience: unknown): ConsumerIdentity | undefined {
    if (provider.consumer !== undefined) return this.#byName.get(provider.consumer);
    if (typeof issuer !== "string") return undefined;
    const named: readonly unknown[] = Array.isArray(audience) ? audience : [audience];
    return this.#byIssuer
      .get(issuer)
      ?.find(({ audiences }) => audiences.length === 0 || audiences.some((each) => named.includes(each)))?.identity;
  }
}
