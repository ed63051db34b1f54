import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Secret } from "@headworks/contract-kit";
import type { Consumer } from "@headworks/gateway-contract";
import type { ConsumerIdentity } from "#request/context.ts";
import type { Clock } from "#slice.ts";
import { credentialsOf, identityOf } from "./consumer-identity.ts";
import { validityOf, type IsValid } from "./validity.ts";
import { canonicalString, macOf, type SignedTarget, type SigningParts } from "./signed-request.ts";

interface SigningKey {
  readonly secret: Buffer;
  readonly identity: ConsumerIdentity;
  readonly isValid: IsValid;
}

/** The signing secrets of a generation; unlike other credentials they are needed as they are. */
export class SigningKeys {
  readonly #byId = new Map<string, SigningKey>();
  /** Signs for unknown key ids, so that these take as long; nobody can know it. */
  readonly #nobody = randomBytes(32);

  constructor(consumers: readonly Consumer[], secret: (text: string) => Secret, clock: Clock) {
    for (const { consumer, credential } of credentialsOf(consumers, "hmac")) {
      this.#byId.set(credential.key_id, {
        secret: Buffer.from(secret(credential.secret).reveal()),
        identity: identityOf(consumer, "hmac"),
        isValid: validityOf(credential, clock),
      });
    }
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Who signed; undefined when the key id is unknown or the signature is not its. */
  find(target: SignedTarget, parts: SigningParts): ConsumerIdentity | undefined {
    const key = this.#byId.get(parts.keyId);
    const mac = macOf(key?.secret ?? this.#nobody, canonicalString(target, parts));
    const isRight = timingSafeEqual(mac, Buffer.from(parts.signature, "hex")) && key?.isValid?.() !== false;
    return isRight ? key?.identity : undefined;
  }
}
