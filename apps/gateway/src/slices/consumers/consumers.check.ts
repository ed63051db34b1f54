import { X509Certificate } from "node:crypto";
import type { ConfigDocument, IntrospectionProvider, JwtProvider } from "@headworks/gateway-contract";
import { isLoopback } from "@headworks/host-patterns";
import { parseEgressUrl } from "#egress/egress-url.ts";
import type { CheckScope, IssueReport } from "#slice.ts";
import { plainFingerprint } from "./authentication-gate.ts";
import { checkValidity, credentialsOf, digestOfText } from "./consumer-identity.ts";
import { metadataUrl } from "./discovered-endpoint.ts";
import type { IssuedKeys } from "./issued-credentials.ts";
import { VERIFIABLE_ALGORITHMS } from "./key-set.ts";

/** Detects credentials assigned to more than one consumer. */
class CredentialOwners {
  readonly #report: IssueReport;
  /** The credential's name in messages, such as `API key`. */
  readonly #what: string;
  readonly #owners = new Map<string, string>();

  constructor(report: IssueReport, what: string) {
    this.#report = report;
    this.#what = what;
  }

  /** `selector` identifies the credential; it never appears in messages. */
  add(selector: string, consumer: string, fieldPath: readonly (string | number)[]): void {
    const owner = this.#owners.get(selector);
    if (owner === undefined) {
      this.#owners.set(selector, consumer);
      return;
    }
    const message =
      owner === consumer
        ? `"${consumer}" has this ${this.#what} twice`
        : `"${consumer}" has the same ${this.#what} as "${owner}", so requests cannot be attributed`;
    // Two passwords for one user allow rotation; a duplicate key of one consumer is only a warning.
    if (owner === consumer && this.#what === "user name") return;
    if (owner === consumer && this.#what === "API key") {
      this.#report.warning("duplicate_credential", fieldPath, message);
    } else this.#report.error("duplicate_credential", fieldPath, message);
  }
}

/** Text that UTF-8 field values can carry (RFC 9110 section 5.5): no controls, no surrounding whitespace. */
const SENDABLE = /^[^\x00-\x20\x7f](?:[^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?$/;
/** Sent to upstreams in `X-Consumer-Name`; only ASCII is interoperable. */
const NAME = /^[!-~](?:[ -~]*[!-~])?$/;

/** Checks that each credential can be presented and identifies one consumer. */
export function checkConsumers(
  document: ConfigDocument,
  report: IssueReport,
  scope: CheckScope,
  issued?: Pick<IssuedKeys, "ownerOf">,
): void {
  for (const [at, { name }] of document.consumers.entries()) {
    if (NAME.test(name)) continue;
    const message = "The name of a consumer is sent to upstreams in X-Consumer-Name, so it must be visible ASCII";
    report.error("bad_value", ["consumers", at, "name"], message);
  }
  for (const kind of ["api_key", "basic", "hmac"] as const) {
    for (const { consumer, credential, fieldPath } of credentialsOf(document.consumers, kind)) {
      const whose = `A credential of "${consumer.name}"`;
      checkValidity(credential, whose, fieldPath, { report, nowMs: scope.clock.now() });
    }
  }
  checkApiKeys(document, report, scope, issued);
  checkUserNames(document, report);
  checkSigningKeys(document, report);
  checkCertificates(document, report);
  checkTokens(document, report, scope);
  warnOfShutRoutes(document, report);
}

/** Warns about routes that require a credential when none can be valid. */
function warnOfShutRoutes({ routes, consumers, gateway }: ConfigDocument, report: IssueReport): void {
  const { jwt_providers: jwt = [], oidc_providers: oidc = [] } = gateway;
  if (consumers.length > 0 || jwt.length > 0 || oidc.length > 0) return;
  for (const [at, { name, auth_required: isRequired }] of routes.entries()) {
    if (isRequired !== true) continue;
    const message = `The route "${name}" refuses every request with 401: there are no consumers`;
    report.warning("bad_value", ["routes", at, "auth_required"], message);
  }
}

function checkApiKeys(
  { consumers }: ConfigDocument,
  report: IssueReport,
  scope: CheckScope,
  issued: Pick<IssuedKeys, "ownerOf"> | undefined,
): void {
  const names = new Set(consumers.map(({ name }) => name));
  const owners = new CredentialOwners(report, "API key");
  for (const { consumer, credential, fieldPath } of credentialsOf(consumers, "api_key")) {
    const key = scope.secret(credential.key)?.reveal();
    // The unresolved secret is already reported.
    if (key === undefined) continue;
    if (!SENDABLE.test(key)) {
      const message = `An API key of "${consumer.name}" has control characters, or space at its ends: no header can carry it`;
      report.error("bad_value", [...fieldPath, "key"], message);
    }
    const digest = digestOfText(key);
    owners.add(digest.toString("hex"), consumer.name, [...fieldPath, "key"]);
    const holder = issued?.ownerOf(digest);
    // A key of a consumer that is not in the document is not accepted.
    if (holder === undefined || !names.has(holder)) continue;
    if (holder === consumer.name) {
      const message = `"${holder}" was also issued this API key through the admin API; retiring it there does not invalidate it`;
      report.warning("duplicate_credential", [...fieldPath, "key"], message);
    } else {
      const message = `"${consumer.name}" has the API key that was issued to "${holder}" through the admin API, so requests cannot be attributed`;
      report.error("duplicate_credential", [...fieldPath, "key"], message);
    }
  }
}

function checkUserNames({ consumers }: ConfigDocument, report: IssueReport): void {
  const owners = new CredentialOwners(report, "user name");
  for (const { consumer, credential, fieldPath } of credentialsOf(consumers, "basic")) {
    owners.add(credential.username, consumer.name, [...fieldPath, "username"]);
  }
}

function checkSigningKeys({ consumers }: ConfigDocument, report: IssueReport): void {
  const owners = new CredentialOwners(report, "key id");
  for (const { consumer, credential, fieldPath } of credentialsOf(consumers, "hmac")) {
    owners.add(credential.key_id, consumer.name, [...fieldPath, "key_id"]);
  }
}

function checkCertificates({ consumers, listeners }: ConfigDocument, report: IssueReport): void {
  const fingerprints = new CredentialOwners(report, "certificate");
  const subjects = new CredentialOwners(report, "subject");
  const isAskedFor = listeners.some(({ tls }) => tls?.client_ca_file !== undefined);
  for (const { consumer, credential, fieldPath } of credentialsOf(consumers, "mtls")) {
    const { fingerprint, subject } = credential;
    if (fingerprint !== undefined) {
      fingerprints.add(plainFingerprint(fingerprint), consumer.name, [...fieldPath, "fingerprint"]);
    }
    if (subject !== undefined) subjects.add(subject, consumer.name, [...fieldPath, "subject"]);
    if (isAskedFor) continue;
    const message = `No listener has a client_ca_file, so the certificate of "${consumer.name}" is never requested`;
    report.warning("unused", fieldPath, message);
  }
}

type FieldPath = readonly (string | number)[];

/** Checks providers' endpoints and algorithms, and that every token identifies one consumer. */
function checkTokens(document: ConfigDocument, report: IssueReport, scope: CheckScope): void {
  const providers = document.gateway.jwt_providers ?? [];
  for (const [at, provider] of providers.entries()) {
    const fieldPath = ["gateway", "jwt_providers", at];
    const danger = `Keys of "${provider.name}" come over plain http: who sits on the way can replace them, and sign tokens`;
    checkUrl(provider.jwks_url, danger, [...fieldPath, "jwks_url"], report);
    checkAlgorithms(provider, fieldPath, report);
    checkAuthority(provider, fieldPath, report, scope);
  }
  const introspected = document.gateway.oidc_providers ?? [];
  for (const [at, provider] of introspected.entries()) {
    const fieldPath = ["gateway", "oidc_providers", at];
    const danger = `Tokens, and the secret of "${provider.name}", go over plain http: who sits on the way has them then`;
    checkEndpoint(provider, danger, fieldPath, report);
    checkAuthority(provider, fieldPath, report, scope);
  }
  checkIssuers(document, [...providers, ...introspected], report);
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
