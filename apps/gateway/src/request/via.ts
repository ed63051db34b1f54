import type { GatewaySettings } from "@headworks/gateway-contract";
import type { RawFields } from "@headworks/http1";

/** The version in which a message came to the gateway. */
export type ReceivedVersion = "1.0" | "1.1" | "2";

type Marks = Readonly<Record<ReceivedVersion, string>>;

const DEFAULT_PASSES = 1;

/**
 * What the gateway says of itself in Via (RFC 9110, 7.6.3), made once per generation. The last part of its pseudonym is
 * one instance's own, so that two instances with the same name, one behind the other, are no loop.
 */
export class Via {
  readonly #instance: string;
  readonly #maxPasses: number;
  /** For requests on their way to upstreams; undefined: none. */
  readonly requests: Marks | undefined;
  /** For answers on their way to clients. */
  readonly responses: Marks | undefined;

  /** `instance` is a token that no other instance has; the workers of one gateway share it. */
  constructor({ name = "gateway", via }: Pick<GatewaySettings, "name" | "via">, instance: string) {
    this.#instance = `-${instance}`;
    this.#maxPasses = via?.max_passes ?? DEFAULT_PASSES;
    const viaPseudonym = `${name}${this.#instance}`;
    // RFC 9113, 8.3: HTTP/2 is version 2.0.
    const marks: Marks = { "1.0": `1.0 ${viaPseudonym}`, "1.1": `1.1 ${viaPseudonym}`, "2": `2.0 ${viaPseudonym}` };
    this.requests = (via?.requests ?? true) ? marks : undefined;
    this.responses = via?.answers === true ? marks : undefined;
  }

  /** Whether a request has passed this instance as often as it may. */
  isLoop(fields: Readonly<RawFields>): boolean {
    let passes = 0;
    for (let at = 0; at < fields.length; at += 2) {
      if (isVia(fields[at] ?? "")) passes += this.#passesIn(fields[at + 1] ?? "");
    }
    return passes >= this.#maxPasses;
  }

  #passesIn(value: string): number {
    if (!value.includes(this.#instance)) return 0;
    // Nobody else knows the instance's part, so that comments and odd spellings need no reading: whoever writes it there
    // was here, or keeps only itself from passing.
    return value.split(this.#instance).length - 1;
  }
}

function isVia(name: string): boolean {
  return name.length === 3 && (name === "Via" || name.toLowerCase() === "via");
}
