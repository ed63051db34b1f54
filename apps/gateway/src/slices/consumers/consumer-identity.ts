import type { Consumer } from "@headworks/gateway-contract";
import type { ConsumerIdentity } from "#request/context.ts";

/** The identity for a credential type; created once per generation. */
export function identityOf(consumer: Consumer, credential: ConsumerIdentity["credential"]): ConsumerIdentity {
  return Object.freeze({
    name: consumer.name,
    groups: Object.freeze([...(consumer.groups ?? [])]),
    priority: consumer.priority,
    credential,
  });
}

/** Credentials of one type with their consumers, in document order. */
export function* credentialsOf<T extends NonNullable<Consumer["credentials"]>[number]["type"]>(
  consumers: readonly Consumer[],
  type: T,
): Generator<{
  readonly consumer: Consumer;
  readonly credential: Extract<NonNullable<Consumer["credentials"]>[number], { type: T }>;
  readonly fieldPath: readonly (string | number)[];
}> {
  for (const [at, consumer] of consumers.entries()) {
    for (const [index, credential] of (consumer.credentials ?? []).entries()) {
      if (isOfType(credential, type)) {
        yield { consumer, credential, fieldPath: ["consumers", at, "credentials", index] };
      }
    }
  }
}

function isOfType<C extends { readonly type: string }, T extends C["type"]>(
  credential: C,
  type: T,
): credential is Extract<C, { type: T }> {
  return credential.type === type;
}
