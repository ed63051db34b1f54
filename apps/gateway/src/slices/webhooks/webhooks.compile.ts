import { EVENT_KINDS, type ConfigDocument, type WebhookTarget } from "@headworks/gateway-contract";
import { wireText } from "@headworks/http1";
import type { CompileScope } from "#slice.ts";
import { parseEgressUrl } from "#egress/egress-url.ts";
import type { DeliveryTarget } from "./delivery-target.ts";
import { signingKey } from "./signature.ts";

/** See decisions, webhook defaults. */
export const DEFAULTS = { timeoutMs: 2000, maxAttempts: 3, backoffBaseMs: 100, backoffCapMs: 1000 } as const;

/** The targets of a valid document with newly resolved secrets. */
export function compileTargets(document: ConfigDocument, scope: CompileScope): DeliveryTarget[] {
  return document.webhooks.map((target) => compileTarget(target, scope)).filter((target) => target !== undefined);
}

function compileTarget(target: WebhookTarget, scope: CompileScope): DeliveryTarget | undefined {
  const url = parseEgressUrl(target.url);
  if ("issue" in url) return undefined;
  const fields = ["Content-Type", "application/json", "User-Agent", "gateway-webhook"];
  for (const [name, text] of Object.entries(target.headers ?? {})) {
    fields.push(name, wireText(scope.secret(text).reveal()));
  }
  return {
    key: target.url,
    url,
    kinds: new Set(EVENT_KINDS.filter((kind) => target.events.includes(kind))),
    fields,
    timeoutMs: target.timeout_ms ?? DEFAULTS.timeoutMs,
    retry: {
      maxAttempts: target.max_attempts ?? DEFAULTS.maxAttempts,
      backoffBaseMs: target.backoff_base_ms ?? DEFAULTS.backoffBaseMs,
      backoffCapMs: target.backoff_cap_ms ?? DEFAULTS.backoffCapMs,
    },
    signingKey: target.signing === undefined ? undefined : signingKey(scope.secret(target.signing.secret).reveal()),
  };
}
