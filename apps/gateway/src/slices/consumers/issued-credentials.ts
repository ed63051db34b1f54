import { randomBytes, randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { Consumer } from "@headworks/gateway-contract";
import type { Clock } from "#slice.ts";
import type { IssuedCredential, StateStore } from "#storage/state-store.ts";
import { digestOfText, isSameDigest, selectorOf } from "./consumer-identity.ts";

/** Keys issued through the admin API, in memory, so that requests never wait for the store. */
export class IssuedKeys {
  readonly #clock: Pick<Clock, "now">;
  readonly #subscribers: (() => Promise<void>)[] = [];
  #all: readonly IssuedCredential[] = [];
  #byDigest: ReadonlyMap<string, IssuedCredential> = new Map();

  constructor(clock: Pick<Clock, "now">, credentials: readonly IssuedCredential[] = []) {
    this.#clock = clock;
    this.#keep(credentials);
  }

  /** Oldest first; a new array after each change. */
  get all(): readonly IssuedCredential[] {
    return this.#all;
  }

  /** The consumer of a valid key. */
  ownerOf(digest: Uint8Array): string | undefined {
    if (this.#byDigest.size === 0) return undefined;
    const known = this.#byDigest.get(selectorOf(digest));
    if (known === undefined || !isSameDigest(known.digest, digest)) return undefined;
    return known.retireMs !== undefined && this.#clock.now() >= known.retireMs ? undefined : known.consumer;
  }

  /** Replaces all keys; resolves when all followers have them. */
  async replaceAll(credentials: readonly IssuedCredential[]): Promise<void> {
    this.#keep(credentials);
    await Promise.all(this.#subscribers.map(async (changed) => await changed()));
  }

  /** Registers a callback for changes. */
  follow(changed: () => Promise<void>): void {
    this.#subscribers.push(changed);
  }

  #keep(credentials: readonly IssuedCredential[]): void {
    this.#all = credentials;
    this.#byDigest = new Map(credentials.map((credential) => [selectorOf(credential.digest), credential]));
  }
}

const KEY_BYTES = { min: 16, max: 512 };
/** All keys are kept in memory and replicated to workers. */
const MAX_CREDENTIALS = 10_000;
/** Characters that survive as a field value; surrounding whitespace would be stripped. */
const KEY_FORM = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

export interface CredentialRefusal {
  readonly refused:
    | "state_store_not_configured"
    | "unknown_consumer"
    | "credential_issue_invalid"
    | "credential_retire_invalid"
    | "credential_not_active";
  readonly message?: string;
}

interface IssuedCredentialsParts {
  /** Undefined without `GATEWAY_STATE_DB`: keys cannot be stored. */
  readonly store: StateStore | undefined;
  readonly keys: IssuedKeys;
  /** Of the running generation. */
  readonly consumers: () => readonly Consumer[];
  /** True if the running document contains this key. */
  readonly isInDocument: (key: string) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Issues and retires API keys at run time; old and new ones overlap. Durable before acknowledged. */
export class IssuedCredentials {
  readonly #parts: IssuedCredentialsParts;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(parts: IssuedCredentialsParts) {
    this.#parts = parts;
  }

  /** Keys of a consumer, oldest first, without secrets. */
  list(consumer: string): readonly IssuedCredential[] | CredentialRefusal {
    const { store, keys } = this.#parts;
    if (store === undefined) return { refused: "state_store_not_configured" };
    const issued = keys.all.filter((credential) => credential.consumer === consumer);
    // Keys of a removed consumer can still be listed and retired.
    return issued.length === 0 && !this.#isKnown(consumer) ? { refused: "unknown_consumer" } : issued;
  }

  /** Issues a key, generated unless given in `key`. The response is the only place where it is readable. */
  async issue(
    consumer: string,
    key = randomBytes(32).toString("base64url"),
  ): Promise<{ readonly credential: IssuedCredential; readonly key: string } | CredentialRefusal> {
    return await this.#inTurn(async () => {
      const { store, keys, isInDocument, clock, log } = this.#parts;
      if (store === undefined) return { refused: "state_store_not_configured" };
      if (!this.#isKnown(consumer)) return { refused: "unknown_consumer" };
      const digest = digestOfText(key);
      const isTaken = keys.all.some((known) => selectorOf(known.digest) === selectorOf(digest)) || isInDocument(key);
      const problem = problemOfKey(key) ?? (isTaken ? "This key was given out before" : undefined);
      if (problem !== undefined) return { refused: "credential_issue_invalid", message: problem };
      if (keys.all.length >= MAX_CREDENTIALS) {
        const message = `${MAX_CREDENTIALS} keys are stored already; retired keys are deleted after 30 days`;
        return { refused: "credential_issue_invalid", message };
      }
      const credential = { id: randomUUID(), consumer, digest, createdMs: clock.now(), retireMs: undefined };
      await store.credentials.add(credential);
      await keys.replaceAll([...keys.all, credential]);
      log.info({ code: "credential_issued", consumer, credential: credential.id }, "A consumer has another key");
      return { credential, key };
    });
  }

  /** Retires a key at `atMs` or now; returns its new state. */
  async retire(
    id: string,
    atMs: number | undefined,
  ): Promise<{ readonly credential: IssuedCredential; readonly isImmediate: boolean } | CredentialRefusal> {
    return await this.#inTurn(async () => {
      const { store, keys, clock, log } = this.#parts;
      if (store === undefined) return { refused: "state_store_not_configured" };
      const known = keys.all.find((credential) => credential.id === id);
      const nowMs = clock.now();
      if (known === undefined || (known.retireMs !== undefined && known.retireMs <= nowMs)) {
        return { refused: "credential_not_active" };
      }
      if (atMs !== undefined && atMs < nowMs) {
        return {
          refused: "credential_retire_invalid",
          message: "at_ms is in the past; leave it out to retire the key now",
        };
      }
      const retireMs = atMs ?? nowMs;
      await store.credentials.retire(id, retireMs);
      const credential = { ...known, retireMs };
      await keys.replaceAll(keys.all.map((each) => (each.id === id ? credential : each)));
      log.info({ code: "credential_retired", consumer: known.consumer, credential: id, retireMs }, "A key is retired");
      return { credential, isImmediate: atMs === undefined || atMs <= nowMs };
    });
  }

  #isKnown(consumer: string): boolean {
    return this.#parts.consumers().some(({ name }) => name === consumer);
  }

  /** Serializes changes, so that each sees the result of the previous one. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return await done;
  }
}

function problemOfKey(key: string): string | undefined {
  const { min, max } = KEY_BYTES;
  if (key.length < min || key.length > max) return `A key has ${min} to ${max} characters, not ${key.length}`;
  return KEY_FORM.test(key) ? undefined : "A key consists of visible ASCII characters, with blanks only inside";
}
