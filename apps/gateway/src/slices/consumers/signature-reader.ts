import { hasBody } from "@headworks/http1";
import type { Logger } from "pino";
import type { ConsumerIdentity, RequestContext } from "#request/context.ts";
import type { Refusal } from "#request/phases.ts";
import type { Clock } from "#slice.ts";
import { BodyDigestCheck, EMPTY_SHA256 } from "./body-digest-check.ts";
import { INVALID, type CredentialReader, type Recognition } from "./credential-reader.ts";
import type { NonceVerdict, Nonces } from "./nonce-memory.ts";
import { SIGNING_FIELDS, type PresentedCredentials } from "./presented-credentials.ts";
import { signingPartsOf } from "./signed-request.ts";
import type { SigningKeys } from "./signing-keys.ts";

/** What reading signatures needs. */
export interface SignatureTools {
  readonly keys: SigningKeys;
  readonly nonces: Nonces;
  readonly clock: Clock;
  readonly log: Logger;
  /** How far a client's clock may be from ours, either way. */
  readonly maxSkewMs: number;
  readonly unauthorized: Refusal;
}

const FULL: Recognition = Object.freeze({
  kind: "unavailable",
  why: "There is no room to remember the nonces of signed requests",
});

/**
 * Reads the five `X-Gateway-*` fields of a signed request. What costs least is checked first; a nonce is remembered only
 * for a signature that is good, so that nobody else fills the memory.
 */
export class SignatureReader implements CredentialReader {
  readonly fields = Object.values(SIGNING_FIELDS);
  readonly isForwarded = false;
  readonly #tools: SignatureTools;

  constructor(tools: SignatureTools) {
    this.#tools = tools;
  }

  claims({ signing }: PresentedCredentials): boolean {
    return signing !== undefined;
  }

  read(request: RequestContext, presented: PresentedCredentials): Recognition | Promise<Recognition> {
    const { keys, nonces, clock, maxSkewMs } = this.#tools;
    const parts = signingPartsOf(presented);
    if (parts === undefined) return INVALID;
    if (Math.abs(clock.now() - Number(parts.timestamp) * 1000) > maxSkewMs) return INVALID;
    const identity = keys.find(request, parts);
    if (identity === undefined) return INVALID;
    if (!hasBody(request.framing) && parts.bodySha256 !== EMPTY_SHA256) return INVALID;
    // A timestamp from the far end of the window stays good for twice its width.
    const verdict = nonces.add(parts.keyId, parts.nonce, clock.monotonic(), 2 * maxSkewMs);
    return verdict instanceof Promise
      ? verdict.then((known) => this.#recognised(request, parts.bodySha256, identity, known))
      : this.#recognised(request, parts.bodySha256, identity, verdict);
  }

  #recognised(
    request: RequestContext,
    bodySha256: string,
    identity: ConsumerIdentity,
    verdict: NonceVerdict,
  ): Recognition {
    if (verdict === "seen") return INVALID;
    if (verdict === "full") return FULL;
    if (hasBody(request.framing)) {
      request.bodyCheck = new BodyDigestCheck(bodySha256, () => this.#mismatch(request));
    }
    return { kind: "consumer", identity };
  }

  #mismatch(request: RequestContext): Refusal {
    const { log, unauthorized } = this.#tools;
    const { requestId, consumer, route } = request;
    const labels = { request_id: requestId, consumer: consumer?.name, route: route?.name };
    log.warn(
      { code: "signature_body_mismatch", ...labels },
      "The body of a signed request is not the one that was signed",
    );
    return unauthorized;
  }
}
