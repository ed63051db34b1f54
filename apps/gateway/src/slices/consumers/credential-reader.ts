import type { ConsumerIdentity, RequestContext } from "#request/context.ts";
import type { PresentedCredentials } from "./presented-credentials.ts";

/** What came of a credential. */
export type Recognition =
  | { readonly kind: "consumer"; readonly identity: ConsumerIdentity }
  | { readonly kind: "invalid" }
  /** Whether it is good cannot be told now; `why` is a sentence for the log. */
  | { readonly kind: "unavailable"; readonly why: string }
  /** The same, where the document lets such requests pass as nobody's. */
  | { readonly kind: "unchecked"; readonly why: string };

export const INVALID: Recognition = Object.freeze({ kind: "invalid" });

/** One way to present a credential in fields. */
export interface CredentialReader {
  /** Lower-case names of its fields. */
  readonly fields: readonly string[];
  /** Whether upstreams get the fields of a credential that was good, however the document is set. */
  readonly isForwarded: boolean;
  /** Whether what was presented is for this reader. What is for none is the upstream's business. */
  claims(presented: PresentedCredentials): boolean;
  /** Looks at what it claims; a promise only where something has to be waited for. */
  read(request: RequestContext, presented: PresentedCredentials): Recognition | Promise<Recognition>;
}

/** A recognition of a consumer, or of nobody. */
export function recognitionOf(identity: ConsumerIdentity | undefined): Recognition {
  return identity === undefined ? INVALID : { kind: "consumer", identity };
}
