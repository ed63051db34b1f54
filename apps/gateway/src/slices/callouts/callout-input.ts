import { fieldValues } from "@headworks/http1";
import type { ConsumerIdentity, RequestContext } from "#request/context.ts";

/** Fields a decision point may see: none of them carries a credential. */
const SHOWN_FIELDS = ["accept", "accept-language", "content-length", "content-type", "origin", "user-agent"] as const;
/** A client could say anything in them. */
const FIELDS_OF_TRUSTED_PROXIES = ["x-forwarded-host", "x-forwarded-proto"] as const;

/** What a decision point is told about a request. */
export interface CalloutInput {
  readonly method: string;
  readonly host: string | null;
  readonly path: string;
  /** Names only, as they were sent: values often are credentials. */
  readonly query_names: readonly string[];
  readonly route: string | null;
  readonly listener: string;
  readonly client_address: string;
  readonly consumer: {
    readonly name: string;
    readonly groups: readonly string[];
    /** The kind of credential, never the credential. */
    readonly credential: string;
    /** Of a token that was verified; only with `jwt`. */
    readonly claims?: Readonly<Record<string, unknown>>;
  } | null;
  /** Lower-case names; several lines of a field are joined. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The facts of a request that decide; the same facts give the same text, which the cache relies on. */
export function calloutInput(request: RequestContext): CalloutInput {
  const headers: Record<string, string> = {};
  const isTrusted = request.generation.trustedProxies.includes(request.peer.address);
  for (const name of isTrusted ? [...SHOWN_FIELDS, ...FIELDS_OF_TRUSTED_PROXIES] : SHOWN_FIELDS) {
    const values = fieldValues(request.fields, name);
    if (values.length > 0) headers[name] = values.join(", ");
  }
  const { consumer } = request;
  return {
    method: request.method,
    host: request.authority ?? null,
    path: request.path,
    query_names: queryNames(request.query),
    route: request.route?.name ?? null,
    listener: request.listener.name,
    client_address: request.clientAddress,
    consumer: consumer === undefined ? null : consumerFacts(consumer),
    headers,
  };
}

function consumerFacts({ name, groups, credential, claims }: ConsumerIdentity): NonNullable<CalloutInput["consumer"]> {
  return claims === undefined ? { name, groups, credential } : { name, groups, credential, claims };
}

function queryNames(query: string | undefined): string[] {
  if (query === undefined || query === "") return [];
  const names = query.split("&").map((pair) => pair.split("=", 1)[0] ?? "");
  return names.filter((name) => name !== "");
}
