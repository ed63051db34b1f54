import type { PeerCertificate } from "node:tls";
import type { Admin, AdminRole } from "@headworks/gateway-contract";
import type { Access } from "@headworks/contract-kit";
import { canonicalHost } from "@headworks/host-patterns";

/** True if the role grants this access: viewer reads, operator manages the runtime, admin changes the configuration. */
export function mayDo(role: AdminRole, access: Access): boolean {
  if (access === "public" || role === "admin") return true;
  if (access.endsWith(":read")) return true;
  return role === "operator" && access.endsWith(":execute");
}

/** The identity of a certificate for the audit log and the history. */
export interface Operator {
  readonly name: string;
  /** Undefined: no role binding matches. */
  readonly role: AdminRole | undefined;
}

/**
 * The role of a verified client certificate: the first matching binding. Without bindings every certificate is an
 * administrator; with bindings an unmatched one has no access.
 */
export function operatorOf(certificate: PeerCertificate, roles: Admin["roles"]): Operator {
  const [alternative] = alternativeNames(certificate.subjectaltname ?? "");
  const name = commonName(certificate) ?? alternative?.value ?? certificate.fingerprint256;
  if (roles === undefined) return { name, role: "admin" };
  const binding = roles.find(({ match }) => matches(certificate, match));
  return { name, role: binding?.role };
}

type CertificateMatch = NonNullable<Admin["roles"]>[number]["match"];

function matches(certificate: PeerCertificate, match: CertificateMatch): boolean {
  if (match.fingerprint !== undefined) return plainHex(match.fingerprint) === plainHex(certificate.fingerprint256);
  if (match.subject !== undefined) return commonName(certificate) === match.subject;
  const names = alternativeNames(certificate.subjectaltname ?? "");
  if (match.san_uri !== undefined) return names.some(({ kind, value }) => kind === "URI" && value === match.san_uri);
  const wanted = match.san_dns === undefined ? undefined : canonicalHost(match.san_dns);
  return names.some(({ kind, value }) => kind === "DNS" && canonicalHost(value) === wanted);
}

function commonName({ subject }: PeerCertificate): string | undefined {
  const { CN } = subject as { CN?: string | string[] };
  return Array.isArray(CN) ? CN[0] : CN;
}

/** Node formats the list as `DNS:a, URI:b` and quotes ambiguous values as JSON strings. */
function alternativeNames(text: string): { kind: string; value: string }[] {
  const names: { kind: string; value: string }[] = [];
  for (const [, kind = "", quoted, plain] of text.matchAll(/(?:^|, )([A-Za-z ]+):(?:("(?:[^"\\]|\\.)*")|([^,]*))/g)) {
    names.push({ kind, value: quoted === undefined ? (plain ?? "") : String(JSON.parse(quoted)) });
  }
  return names;
}

function plainHex(text: string): string {
  return text.replaceAll(":", "").toLowerCase();
}
