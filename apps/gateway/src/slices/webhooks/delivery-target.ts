import type { EventKind } from "@headworks/gateway-contract";
import type { RawFields } from "@headworks/http1";
import type { EgressUrl } from "#egress/egress-url.ts";
import type { RetryRule } from "./retry-rule.ts";

/** A compiled webhook target of one generation. */
export interface DeliveryTarget {
  /** The URL in the document; the target's key in the store. */
  readonly key: string;
  readonly url: EgressUrl;
  readonly kinds: ReadonlySet<EventKind>;
  /** Fields independent of the event. Contains resolved secrets; never log it. */
  readonly fields: Readonly<RawFields>;
  readonly timeoutMs: number;
  readonly retry: RetryRule;
  readonly signingKey: Buffer | undefined;
}
