import type { EventKind } from "@headworks/gateway-contract";
import type { RawFields } from "@headworks/http1";
import type { EgressUrl } from "#egress/egress-url.ts";
import type { RetryRule } from "./retry-rule.ts";

/** A webhook target of one generation, ready to send to. */
export interface DeliveryTarget {
  /** As the document has it; the target's name in the store. */
  readonly key: string;
  readonly url: EgressUrl;
  readonly kinds: ReadonlySet<EventKind>;
  /** Everything but what changes with the event: with resolved secrets, so never to be printed. */
  readonly fields: Readonly<RawFields>;
  readonly timeoutMs: number;
  readonly retry: RetryRule;
  readonly signingKey: Buffer | undefined;
}
