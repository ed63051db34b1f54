import type { Logger } from "pino";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { asEgressError } from "#egress/egress-failure.ts";
import { parseEgressUrl, type EgressUrl } from "#egress/egress-url.ts";
import type { Clock } from "#slice.ts";
import { jsonObject } from "./json-object.ts";
import { fetchPublished, type PublishedPlace } from "./published-fetch.ts";

export interface DiscoveredEndpointParts {
  /** For logs. */
  readonly provider: string;
  readonly issuer: string;
  /** Certificates (PEM) to trust instead of the public roots. */
  readonly roots: readonly string[] | undefined;
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
}

const FETCH_MS = 5000;
/** What was found is looked up again behind the requests' backs. */
const REFRESH_MS = 3_600_000;
/** Between two lookups at least, however many questions the endpoint leaves without an answer. */
const MIN_PAUSE_MS = 5000;
/** Behind a lookup that failed; twice as long behind each further one. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 60_000;

/**
 * The introspection endpoint that an issuer names in its metadata (OpenID Connect Discovery 1.0, 4; RFC 8414, 3): looked
 * up with the first question, kept while lookups fail, and looked up again when the endpoint gives no answers.
 */
export class DiscoveredEndpoint {
  readonly #parts: DiscoveredEndpointParts;
  readonly #place: PublishedPlace;
  #found: EgressUrl | undefined;
  #refreshAtMs = 0;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #pauseMs = FIRST_PAUSE_MS;
  #looking: Promise<void> | undefined;

  constructor(parts: DiscoveredEndpointParts) {
    this.#parts = parts;
    const url = metadataUrl(parts.issuer);
    if ("issue" in url) throw new Error(`The issuer of ${parts.provider} was not checked`);
    this.#place = { url, roots: parts.roots, purpose: "introspection" };
  }

  /** The endpoint; undefined while it cannot be had. Never rejects. */
  async find(): Promise<EgressUrl | undefined> {
    const nowMs = this.#parts.clock.monotonic();
    if (this.#found === undefined) await this.#look(nowMs);
    // Rejects never.
    else if (nowMs >= this.#refreshAtMs) void this.#look(nowMs);
    return this.#found;
  }

  /** The endpoint gave no answer: there may be another one by now. */
  doubt(): void {
    this.#refreshAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Looks it up, unless that was tried a moment ago; joins a lookup that is under way. */
  async #look(nowMs: number): Promise<void> {
    if (this.#looking !== undefined) return await this.#looking;
    if (nowMs < this.#nextAtMs) return;
    this.#looking = this.#fetch();
    await this.#looking;
    this.#looking = undefined;
  }

  async #fetch(): Promise<void> {
    const { dialer, clock, log, provider, issuer } = this.#parts;
    try {
      const body = await fetchPublished(dialer, this.#place, AbortSignal.timeout(FETCH_MS));
      this.#found = endpointIn(body, issuer);
      this.#pauseMs = FIRST_PAUSE_MS;
      this.#nextAtMs = clock.monotonic() + MIN_PAUSE_MS;
      this.#refreshAtMs = clock.monotonic() + REFRESH_MS;
    } catch (error) {
      this.#nextAtMs = clock.monotonic() + this.#pauseMs;
      this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
      const { code, message } = asEgressError(error, "bad_answer");
      const facts = { code: "discovery_failed", provider, failure: code, why: message };
      log.warn(facts, "An issuer does not say where its tokens can be asked about");
    }
  }
}

/** Where the metadata of an issuer is; a slash at the end of the issuer is not doubled. */
export function metadataUrl(issuer: string): ReturnType<typeof parseEgressUrl> {
  if (/[?#]/.test(issuer)) return { issue: "The URL of an issuer has no query and no fragment." };
  return parseEgressUrl(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
}

/** @throws Error for metadata that name no endpoint to be trusted; the message is ours */
function endpointIn(body: Buffer, issuer: string): EgressUrl {
  const metadata = jsonObject(body);
  if (metadata === undefined) throw new Error("The metadata are no JSON object");
  // Or one issuer could speak for another (OpenID Connect Discovery 1.0, 4.3).
  if (metadata["issuer"] !== issuer) throw new Error("The metadata are those of another issuer");
  const { introspection_endpoint: text } = metadata;
  if (typeof text !== "string") throw new Error("The metadata name no introspection_endpoint");
  const url = parseEgressUrl(text);
  if ("issue" in url) throw new Error("The introspection_endpoint of the metadata is no URL that can be used");
  if (!url.isSecure && /^https:/i.test(issuer)) throw new Error("The metadata name an endpoint without TLS");
  return url;
}
