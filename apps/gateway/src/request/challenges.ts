import type { ConfigDocument, Consumer } from "@headworks/gateway-contract";
import type { RawFields } from "@headworks/http1";

type CredentialType = NonNullable<Consumer["credentials"]>[number]["type"];

const REALM = 'realm="gateway"';

/**
 * The `WWW-Authenticate` fields of every 401 of a generation (RFC 9110 section 11.6.1): one per credential type in
 * the document. A 401 must have one, so without credentials it names the API key.
 */
export function challengesOf(document: ConfigDocument): Readonly<RawFields> {
  const types = new Set<CredentialType>();
  for (const { credentials = [] } of document.consumers) for (const { type } of credentials) types.add(type);
  const { jwt_providers: keyed = [], oidc_providers: asked = [] } = document.gateway;
  if (keyed.length > 0 || asked.length > 0) types.add("jwt");
  const challenges: string[] = [];
  if (types.has("api_key")) challenges.push(`ApiKey ${REALM}`);
  if (types.has("basic")) challenges.push(`Basic ${REALM}, charset="UTF-8"`);
  if (types.has("jwt")) challenges.push(`Bearer ${REALM}`);
  if (types.has("hmac")) challenges.push(`Gateway-HMAC-SHA256 ${REALM}`);
  if (types.has("mtls")) challenges.push(`TLS-Client-Certificate ${REALM}`);
  if (challenges.length === 0) challenges.push(`ApiKey ${REALM}`);
  return challenges.flatMap((challenge) => ["WWW-Authenticate", challenge]);
}
