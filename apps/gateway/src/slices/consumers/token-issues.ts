import { X509Certificate } from "node:crypto";
import type { ConfigDocument, IntrospectionProvider, JwtProvider } from "@headworks/gateway-contract";
import { isLoopback } from "@headworks/host-patterns";
import { parseEgressUrl } from "#egress/egress-url.ts";
import type { CheckScope, IssueReport } from "#slice.ts";
import { credentialsOf } from "./consumer-identity.ts";
import { metadataUrl } from "./discovered-endpoint.ts";
import { VERIFIABLE_ALGORITHMS } from "./verification-keys.ts";

type FieldPath = readonly (string | number)[];

/** Checks providers' endpoints and algorithms, and that every token identifies one consumer. */
export function checkTokens(document: ConfigDocument, report: IssueReport, scope: CheckScope): void {
  const providers = document.gateway.jwt_providers ?? [];
  for (const [at, provider] of providers.entries()) {
    const fieldPath = ["gateway", "jwt_providers", at];
    const danger = `Keys of "${provider.name}" come over plain http: who sits on the way can replace them, and sign tokens`;
    checkUrl(provider.jwks_url, danger, [...fieldPath, "jwks_url"], report);
    checkAlgorithms(provider, fieldPath, report);
    checkAuthority(provider, fieldPath, report, scope);
  }
  const asked = document.gateway.oidc_providers ?? [];
  for (const [at, provider] of asked.entries()) {
    const fieldPath = ["gateway", "oidc_providers", at];
    const danger = `Tokens, and the secret of "${provider.name}", go over plain http: who sits on the way has them then`;
    checkEndpoint(provider, danger, fieldPath, report);
    checkAuthority(provider, fieldPath, report, scope);
  }
  checkIssuers(document, [...providers, ...asked], report);
}

function checkEndpoint(
  { name, issuer, introspection_endpoint: endpoint }: IntrospectionProvider,
  danger: string,
  fieldPath: FieldPath,
  report: IssueReport,
): void {
  if (endpoint !== undefined) return checkUrl(endpoint, danger, [...fieldPath, "introspection_endpoint"], report);
  if (issuer === undefined) {
    const message = `"${name}" needs an introspection_endpoint, or an issuer for discovery`;
    return report.error("required", [...fieldPath, "introspection_endpoint"], message);
  }
  const url = metadataUrl(issuer);
  if ("issue" in url) {
    const message = `The issuer of "${name}" is not asked where its introspection endpoint is; give introspection_endpoint. ${url.issue}`;
    return report.error("bad_url", [...fieldPath, "issuer"], message);
  }
  checkUrl(issuer, danger, [...fieldPath, "issuer"], report);
}

function checkUrl(text: string, danger: string, fieldPath: FieldPath, report: IssueReport): void {
  const url = parseEgressUrl(text);
  if ("issue" in url) return report.error("bad_url", fieldPath, url.issue);
  if (url.isSecure || url.host === "localhost" || isLoopback(url.host)) return;
  report.warning("bad_url", fieldPath, danger);
}

function checkAlgorithms(provider: JwtProvider, fieldPath: FieldPath, report: IssueReport): void {
  for (const [at, algorithm] of (provider.algorithms ?? []).entries()) {
    if (VERIFIABLE_ALGORITHMS.includes(algorithm)) continue;
    const message = `"${algorithm}" cannot prove the origin of a token; use one of ${VERIFIABLE_ALGORITHMS.join(", ")}`;
    report.error("bad_value", [...fieldPath, "algorithms", at], message);
  }
}

function checkAuthority(
  provider: Pick<JwtProvider, "trusted_ca_file">,
  fieldPath: FieldPath,
  report: IssueReport,
  scope: CheckScope,
): void {
  if (provider.trusted_ca_file === undefined) return;
  const bytes = scope.readFile(provider.trusted_ca_file);
  const why = bytes === undefined ? "cannot be read" : isCertificate(bytes) ? undefined : "holds no certificate in PEM";
  if (why === undefined) return;
  report.error("bad_file", [...fieldPath, "trusted_ca_file"], `The file ${provider.trusted_ca_file} ${why}`);
}

function isCertificate(bytes: Buffer): boolean {
  try {
    return bytes.includes("-----BEGIN CERTIFICATE-----") && new X509Certificate(bytes).raw.length > 0;
  } catch {
    return false;
  }
}

function checkIssuers(
  document: ConfigDocument,
  providers: readonly Pick<JwtProvider, "issuer" | "consumer">[],
  report: IssueReport,
): void {
  const owners: { readonly issuer: string; readonly audiences: readonly string[]; readonly name: string }[] = [];
  const takesAny = providers.some(({ issuer, consumer }) => issuer === undefined && consumer === undefined);
  for (const { consumer, credential, fieldPath } of credentialsOf(document.consumers, "jwt")) {
    const { issuer, audiences = [] } = credential;
    if (!takesAny && !providers.some((provider) => provider.issuer === issuer && provider.consumer === undefined)) {
      const message = `No provider assigns tokens of the issuer "${issuer}" to consumers, so "${consumer.name}" is never identified by one`;
      report.error("unknown_reference", [...fieldPath, "issuer"], message);
    }
    const other = owners.find(
      (owner) => owner.issuer === issuer && owner.name !== consumer.name && isAmbiguous(owner.audiences, audiences),
    );
    if (other !== undefined) {
      const message = `A token of the issuer "${issuer}" could be that of "${other.name}" and of "${consumer.name}"; tell them apart by audiences`;
      report.error("duplicate_credential", fieldPath, message);
    }
    owners.push({ issuer, audiences, name: consumer.name });
  }
}

/** A named audience takes precedence over any, so only equal kinds are ambiguous. */
function isAmbiguous(a: readonly string[], b: readonly string[]): boolean {
  if (a.length === 0 || b.length === 0) return a.length === b.length;
  return a.some((audience) => b.includes(audience));
}
