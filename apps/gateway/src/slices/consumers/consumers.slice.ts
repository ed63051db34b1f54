import type { ConfigDocument } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { challengesOf } from "#request/challenges.ts";
import type { Refusal } from "#request/phases.ts";
import type { Clock, CompiledSlice, CompileScope, GatewaySlice } from "#slice.ts";
import { AuthenticationGate, type Authentication } from "./authentication-gate.ts";
import { AuthenticationReports } from "./authentication-reports.ts";
import { ApiKeyReader } from "./api-key-reader.ts";
import { ApiKeys } from "./api-keys.ts";
import { BasicPasswords } from "./basic-passwords.ts";
import { BasicReader } from "./basic-reader.ts";
import { BearerReader } from "./bearer-reader.ts";
import { ClientCertificates } from "./client-certificates.ts";
import { checkConsumers } from "./consumers.check.ts";
import type { CredentialReader } from "./credential-reader.ts";
import type { IssuedKeys } from "./issued-keys.ts";
import { introspectionSource } from "./introspection-endpoint.ts";
import { NonceMemory, type Nonces } from "./nonce-memory.ts";
import { SignatureReader } from "./signature-reader.ts";
import { SigningKeys } from "./signing-keys.ts";
import { TokenIntrospection } from "./token-introspection.ts";
import { TokenOwners } from "./token-owners.ts";
import { TokenProviders } from "./token-providers.ts";
import { TokenVerifier, type TokenProvider } from "./token-verifier.ts";

export { IssuedCredentials, type CredentialRefusal } from "./issued-credentials.ts";
export { IssuedKeys } from "./issued-keys.ts";
export { NonceMemory, type Nonces, type NonceVerdict } from "./nonce-memory.ts";

/** What recognising consumers needs of the gateway. */
export interface ConsumersHost {
  /** Fetches the keys of token providers. */
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Where nonces of signed requests are remembered. It outlives generations: a reload forgets none. */
  readonly nonces?: Nonces;
  /** Keys beside those of the document; they change without a reload. */
  readonly issued?: IssuedKeys;
}

const DEFAULT_SKEW_S = 300;

/** The slice, and what is asked of it beyond requests. */
export interface ConsumersSlice extends GatewaySlice {
  /** Whether a consumer of the published document has this API key by it. */
  hasKey(key: string): boolean;
}

/** Recognises the consumer behind each request by the credential it presents. */
export function createConsumers(host: ConsumersHost): ConsumersSlice {
  const nonces = host.nonces ?? new NonceMemory();
  // Outlives a generation: a reload does not ask for keys that are known.
  const tokenProviders = new TokenProviders(host);
  const reports = new AuthenticationReports(host.log, host.clock);
  let published: ApiKeys | undefined;

  const compile = (document: ConfigDocument, scope: CompileScope): CompiledSlice => {
    const { consumers, gateway } = document;
    const documents = gateway.jwt_providers ?? [];
    const tokens = tokenProviders.prepare(documents, (path) => scope.readFile(path));
    const unauthorized: Refusal = { code: "unauthorized", fields: [...challengesOf(document)] };
    const certificates = new ClientCertificates(consumers);
    const keys = new ApiKeys(consumers, (text) => scope.secret(text), host.clock, host.issued);
    const authentication: Authentication = {
      readers: readersOf({ document, scope, host, keys, nonces, providers: tokens.providers, unauthorized }),
      certificates: certificates.size === 0 ? undefined : certificates,
      forwardsCredentials: gateway.forward_credentials === true,
      unauthorized,
      reports,
    };
    const isOn = consumers.length > 0 || documents.length > 0 || (gateway.oidc_providers ?? []).length > 0;
    const optional = new AuthenticationGate(authentication, false);
    const required = new AuthenticationGate(authentication, true);
    return {
      gateFor: (route) => {
        // A route that asks for a consumer stays shut when the document knows none.
        if (route.auth_required === true) return required;
        return isOn ? optional : undefined;
      },
      published: () => {
        published = keys;
        tokens.published?.();
      },
    };
  };

  return {
    name: "consumers",
    check: (document, report, scope) => checkConsumers(document, report, scope, host.issued),
    compile,
    hasKey: (key) => published?.knows(key) === true,
  };
}

interface ReaderParts {
  readonly document: ConfigDocument;
  readonly scope: CompileScope;
  readonly host: ConsumersHost;
  readonly keys: ApiKeys;
  readonly nonces: Nonces;
  readonly providers: readonly TokenProvider[];
  readonly unauthorized: Refusal;
}

/** Readers in the order of precedence; kinds of credentials that nobody has are not read. */
function readersOf({
  document,
  scope,
  host,
  keys: apiKeys,
  nonces,
  providers,
  unauthorized,
}: ReaderParts): CredentialReader[] {
  const { consumers, gateway } = document;
  const { clock, log } = host;
  const secret = (text: string): ReturnType<CompileScope["secret"]> => scope.secret(text);
  const readers: CredentialReader[] = [new ApiKeyReader(apiKeys)];
  const passwords = new BasicPasswords(consumers, secret, clock);
  if (passwords.size > 0) readers.push(new BasicReader(passwords));
  const asked = (gateway.oidc_providers ?? []).map((provider) => introspectionSource(provider, scope, host));
  if (providers.length > 0 || asked.length > 0) {
    const owners = new TokenOwners(consumers);
    const verifier = providers.length > 0 ? new TokenVerifier(providers, owners, clock) : undefined;
    const introspection = asked.length > 0 ? new TokenIntrospection(asked, owners, clock) : undefined;
    readers.push(new BearerReader(verifier, introspection));
  }
  const keys = new SigningKeys(consumers, secret, clock);
  if (keys.size > 0) {
    const maxSkewMs = (gateway.hmac_auth?.max_clock_skew_secs ?? DEFAULT_SKEW_S) * 1000;
    readers.push(new SignatureReader({ keys, nonces, clock, log, maxSkewMs, unauthorized }));
  }
  return readers;
}
