import { strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { EVENT_KINDS, MAX_MS, SecretHeaderMap, SecretText } from "./primitives.ts";

/** Fields are validated with the document, so that issues are specific. */
export const WebhookTarget = strictObject({
  url: Type.String(),
  events: Type.Array(Type.String({ "x-choices": EVENT_KINDS })),
  headers: Type.Optional(SecretHeaderMap),
  timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 60_000, default: 2000 })),
  max_attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 10, default: 3 })),
  backoff_base_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_MS, default: 100 })),
  backoff_cap_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_MS, default: 1000 })),
  /** Adds the three headers of Standard Webhooks. */
  signing: Type.Optional(strictObject({ secret: SecretText })),
});
export type WebhookTarget = Static<typeof WebhookTarget>;
