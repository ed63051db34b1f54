import type { ConsumerIdentity, RequestContext } from "#request/context.ts";
import type { PresentedCredentials } from "./presented-credentials.ts";

export type Recognition =
  | { readonly kind: "consumer"; readonly identity: ConsumerIdentity }
  | { readonly kind: "invalid" }
  /** Verification is unavailable; `why` is a sentence for the log. */
  | { readonly kind: "unavailable"; readonly why: string }
  /** As above, but the document lets such requests pass anonymously. */
  | { readonly kind: "unchecked"; readonly why: string };

export const INVALID: Recognition = Object.freeze({ kind: "invalid" });

/** One way to present credentials in fields. */
export interface CredentialReader {
  /** Lower-case field names. */
  readonly fields: readonly string[];
  /** True if upstreams always receive valid credentials of this type. */
  readonly isForwarded: boolean;
  /** True if the credentials are for this reader. Unclaimed ones are left to the upstream. */
  claims(presented: PresentedCredentials): boolean;
  /** Verifies claimed credentials; returns a promise only if it has to wait. */
  read(request: RequestContext, presented: PresentedCredentials): Recognition | Promise<Recognition>;
}

export function recognitionOf(identity: ConsumerIdentity | undefined): Recognition {
  return identity === undefined ? INVALID : { kind: "consumer", identity };
}
