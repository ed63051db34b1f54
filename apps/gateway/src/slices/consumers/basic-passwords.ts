import type { Secret } from "@headworks/contract-kit";
import type { Consumer } from "@headworks/gateway-contract";
import { wireText } from "@headworks/http1";
import type { ConsumerIdentity } from "#request/context.ts";
import type { Clock } from "#slice.ts";
import { credentialsOf, identityOf } from "./consumer-identity.ts";
import { validityOf, type IsValid } from "./validity.ts";
import { digestOfText, digestOfWire, isSameDigest } from "./credential-digest.ts";

interface KnownPassword {
  readonly digest: Buffer;
  readonly identity: ConsumerIdentity;
  readonly isValid: IsValid;
}

/** User name and password of a client, one byte in each character. */
interface UserPass {
  readonly username: string;
  readonly password: string;
}

const SOMEBODY: ConsumerIdentity = { name: "", groups: [], priority: undefined, credential: "basic" };
// Compared with where the user is unknown, so that this takes as long.
const NOBODY: readonly KnownPassword[] = [{ digest: digestOfText(""), identity: SOMEBODY, isValid: () => false }];

/** The users of a generation that present a password. Keeps only the passwords' SHA-256. */
export class BasicPasswords {
  /** A user may have several passwords, of which one is to replace another. */
  readonly #byName = new Map<string, KnownPassword[]>();

  constructor(consumers: readonly Consumer[], secret: (text: string) => Secret, clock: Clock) {
    for (const { consumer, credential } of credentialsOf(consumers, "basic")) {
      const digest = digestOfText(secret(credential.password).reveal());
      // What RFC 7617 section 2.1 makes clients send.
      const name = wireText(credential.username);
      const passwords = this.#byName.get(name) ?? [];
      passwords.push({ digest, identity: identityOf(consumer, "basic"), isValid: validityOf(credential, clock) });
      this.#byName.set(name, passwords);
    }
  }

  get size(): number {
    return this.#byName.size;
  }

  /** Whose password it is; undefined for a wrong one, and for what is no Basic credential. */
  find(credential: string): ConsumerIdentity | undefined {
    const presented = userPassOf(credential);
    if (presented === undefined) return undefined;
    const digest = digestOfWire(presented.password);
    let identity: ConsumerIdentity | undefined;
    for (const known of this.#byName.get(presented.username) ?? NOBODY) {
      if (isSameDigest(known.digest, digest) && known.isValid?.() !== false) identity = known.identity;
    }
    return identity;
  }
}

/** The user and password of RFC 7617: strict base64, with or without padding, and a colon behind the user. */
function userPassOf(credential: string): UserPass | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(credential)) return undefined;
  const text = Buffer.from(credential, "base64").toString("latin1");
  const colon = text.indexOf(":");
  return colon === -1 ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}
