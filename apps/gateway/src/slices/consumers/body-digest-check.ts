import { createHash } from "node:crypto";
import type { BodyCheck, Refusal } from "#request/phases.ts";

/** SHA-256 of nothing, which requests without a body are signed with. */
export const EMPTY_SHA256 = createHash("sha256").digest("hex");

/** Holds the body of a signed request against the digest that was signed. */
export class BodyDigestCheck implements BodyCheck {
  readonly #hash = createHash("sha256");
  readonly #expected: string;
  readonly #refused: () => Refusal;

  /** `refused` is asked for the answer when the body is another one. */
  constructor(expected: string, refused: () => Refusal) {
    this.#expected = expected;
    this.#refused = refused;
  }

  onData(piece: Buffer): void {
    this.#hash.update(piece);
  }

  onEnd(): Refusal | undefined {
    // Both digests are the client's own business, so how long the comparison takes tells it nothing.
    return this.#hash.digest("hex") === this.#expected ? undefined : this.#refused();
  }
}
