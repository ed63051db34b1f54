// Tested by ../../../test/consumers/passwords.test.ts
import type { Secret } from "@headworks/contract-kit";
import type { Consumer } from "@headworks/gateway-contract";
import type { ConsumerIdentity } from "#request/context.ts";
import { credentialsOf, identityOf } from "./consumer-identity.ts";
import { digestOfText, digestOfWire, isSameDigest } from "./credential-digest.ts";

interface KnownUser {
  readonly digest: Buffer;
  readonly identity: ConsumerIdentity;
}

/** User name and password of a client, one byte in each character. */
interface UserPass {
  readonly username: string;
  readonly password: string;
}

// Compared with where the user is unknown, so that this takes as long.
const NOBODY = digestOfText("");

/** The users of a generation that present a password. Keeps only the passwords' SHA-256. */
export class BasicPasswords {
  readonly #byName = new Map<string, KnownUser>();

  constructor(consumers: readonly Consumer[], secret: (text: string) => Secret) {
    for (const { consumer, credential } of credentialsOf(consumers, "basic")) {
      const digest = digestOfText(secret(credential.password).reveal());
      this.#byName.set(wireText(credential.username), { digest, identity: identityOf(consumer, "basic") });
    }
  }

  get size(): number {
    return this.#byName.size;
  }

  /** Whose password it is; undefined for a wrong one, and for what is no Basic credential. */
  find(credential: string): ConsumerIdentity | undefined {
    const presented = userPassOf(credential);
    if (presented === undefined) return undefined;
    const user = this.#byName.get(presented.username);
    const isRight = isSameDigest(user?.digest ?? NOBODY, digestOfWire(presented.password));
    return isRight ? user?.identity : undefined;
  }
}

/** Text as its UTF-8 bytes, one in each character: what RFC 7617 section 2.1 makes clients send. */
function wireText(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** The user and password of RFC 7617: strict base64, with or without padding, and a colon behind the user. */
function userPassOf(credential: string): UserPass | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(credential)) return undefined;
  const text = Buffer.from(credential, "base64").toString("latin1");
  const colon = text.indexOf(":");
  return colon === -1 ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}
