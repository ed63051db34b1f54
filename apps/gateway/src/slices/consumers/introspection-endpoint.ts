import type { IntrospectionProvider } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { parseEgressUrl } from "#egress/egress-url.ts";
import { post } from "#egress/post.ts";
import type { Clock, CompileScope } from "#slice.ts";
import { DiscoveredEndpoint } from "./discovered-endpoint.ts";
import { jsonObject } from "./json-object.ts";
import type { IntrospectionSource } from "./token-introspection.ts";

export interface IntrospectionTools {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
}

const RESPONSE_TIMEOUT_MS = 5000;
/** Answers have some hundred bytes. */
const MAX_RESPONSE_BYTES = 65_536;
const LOG_EVERY_MS = 10_000;

/** A provider as something to ask. What goes wrong is logged now and then, never with the token or the secret. */
export function introspectionSource(
  document: IntrospectionProvider,
  scope: Pick<CompileScope, "secret" | "readFile">,
  tools: IntrospectionTools,
): IntrospectionSource {
  const { dialer, clock, log } = tools;
  const { trusted_ca_file: file } = document;
  const roots = file === undefined ? undefined : [scope.readFile(file).toString()];
  const endpoint = endpointOf(document, roots, tools);
  const credentials = `${encoded(document.client_id)}:${encoded(scope.secret(document.client_secret).reveal())}`;
  const fields = [
    ["Authorization", `Basic ${Buffer.from(credentials).toString("base64")}`],
    ["Content-Type", "application/x-www-form-urlencoded"],
    ["Accept", "application/json"],
    ["User-Agent", "gateway-introspection"],
  ].flat();
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  const failed = (why: string): undefined => {
    const nowMs = clock.monotonic();
    if (nowMs - loggedAtMs < LOG_EVERY_MS) return;
    loggedAtMs = nowMs;
    const provider = document.name;
    log.warn({ code: "introspection_failed", provider, why }, "A token introspection endpoint gives no answer");
  };
  return {
    document,
    ask: async (token) => {
      const found = await endpoint.find();
      if (found === undefined) return failed("It is not known where it is");
      const url = roots === undefined ? found : { ...found, roots };
      const body = Buffer.from(`token=${encoded(token)}&token_type_hint=access_token`);
      const maxBodyBytes = MAX_RESPONSE_BYTES;
      const request = { url, fields, body, maxBodyBytes, needsBody: true, isLenient: true } as const;
      const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
      const result = await post(dialer, { ...request, purpose: "introspection" }, signal);
      const claims = result.kind === "answer" && result.status === 200 ? jsonObject(result.body) : undefined;
      if (claims !== undefined) return claims;
      endpoint.doubt();
      if (result.kind === "failure") return failed(result.error.message);
      if (result.status !== 200) return failed(`The status of the answer is ${result.status}, not 200`);
      return failed("The answer is no JSON object");
    },
  };
}

/** Where to ask: as the document says, or as the issuer does. */
function endpointOf(
  document: IntrospectionProvider,
  roots: readonly string[] | undefined,
  tools: IntrospectionTools,
): Pick<DiscoveredEndpoint, "find" | "doubt"> {
  const { name, introspection_endpoint: written, issuer = "" } = document;
  if (written === undefined) return new DiscoveredEndpoint({ provider: name, issuer, roots, ...tools });
  const url = parseEgressUrl(written);
  if ("issue" in url) throw new Error(`The introspection_endpoint of ${name} was not checked`);
  return { find: async () => await Promise.resolve(url), doubt: () => undefined };
}

/** As forms have it, which also client ids and secrets are to be written in (RFC 6749, 2.3.1). */
function encoded(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}
