import type { GatewaySettings } from "@headworks/gateway-contract";
import type { RawFields } from "@headworks/http1";

/** The HTTP version of a message that the gateway received. */
export type ReceivedVersion = "1.0" | "1.1" | "2";

type Marks = Readonly<Record<ReceivedVersion, string>>;

const DEFAULT_PASSES = 1;

/**
 * The gateway's marks in Via (RFC 9110, 7.6.3), made once per generation. The pseudonym ends with a token of the
 * instance, so that two instances with the same name in a chain are no loop.
 */
export class Via {
  readonly #instance: string;
  readonly #maxPasses: number;
  /** For requests to upstreams; undefined: none. */
  readonly requests: Marks | undefined;
  /** For responses to clients. */
  readonly responses: Marks | undefined;

  /** `instance` is a token unique to this instance; the workers of one gateway share it. */
  constructor({ name = "gateway", via }: Pick<GatewaySettings, "name" | "via">, instance: string) {
    this.#instance = `-${instance}`;
    this.#maxPasses = via?.max_passes ?? DEFAULT_PASSES;
    const viaPseudonym = `${name}${this.#instance}`;
    // RFC 9113, 8.3: HTTP/2 is version 2.0.
    const marks: Marks = { "1.0": `1.0 ${viaPseudonym}`, "1.1": `1.1 ${viaPseudonym}`, "2": `2.0 ${viaPseudonym}` };
    this.requests = (via?.requests ?? true) ? marks : undefined;
    this.responses = via?.answers === true ? marks : undefined;
  }

  /** Whether a request has passed this instance as often as allowed. */
  isLoop(fields: Readonly<RawFields>): boolean {
    let passes = 0;
    for (let at = 0; at < fields.length; at += 2) {
      if (isVia(fields[at] ?? "")) passes += this.#passesIn(fields[at + 1] ?? "");
    }
    return passes >= this.#maxPasses;
  }

  #passesIn(value: string): number {
    if (!value.includes(this.#instance)) return 0;
    // The token is secret, so comments and unusual spellings need no parsing: a client that writes it was here, or
    // only blocks itself.
    return value.split(this.#instance).length - 1;
  }
}

function isVia(name: string): boolean {
  return name.length === 3 && (name === "Via" || name.toLowerCase() === "via");
}
