import type { ConfigDocument } from "@headworks/gateway-contract";
import type { CheckScope, IssueReport } from "#slice.ts";
import { plainFingerprint } from "./client-certificates.ts";
import { credentialsOf } from "./consumer-identity.ts";
import { digestOfText } from "./credential-digest.ts";
import type { IssuedKeys } from "./issued-keys.ts";
import { checkTokens } from "./token-issues.ts";
import { checkValidity } from "./validity.ts";

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

/**
 * Checks that each credential can be presented and identifies one consumer; `issued` are keys issued through the admin
 * API. Messages contain no secrets.
 */
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
