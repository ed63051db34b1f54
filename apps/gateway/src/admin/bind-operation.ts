import type { Readable } from "node:stream";
import type { PeerCertificate } from "node:tls";
import type { Access, Operation } from "@headworks/contract-kit";
import { compileRequestValidator } from "@headworks/contract-kit/server";
import { type Admin, ADMIN_ERRORS, type AdminErrorCode, type AdminRole, type Issue } from "@headworks/gateway-contract";
import { canonicalHost } from "@headworks/host-patterns";

export interface Caller extends Operator {
  readonly requestId: string;
}

/** Untyped input of a handler. */
export interface HandlerCall {
  readonly params: unknown;
  readonly query: unknown;
  /** Parsed JSON, or the text of an upload. */
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly caller: Caller;
  /** True while the current bindings allow this operation; for streaming responses. */
  readonly isStillAllowed: () => boolean;
  /** Adds a detail to the audit entry of this call; no secrets. */
  readonly note: (detail: string) => void;
}

export type AnyHandler = (call: HandlerCall) => unknown;

interface Given {
  readonly params: Readonly<Record<string, string>>;
  /** The query string. */
  readonly search: string;
  readonly headers: HandlerCall["headers"];
  readonly body: string | undefined;
  readonly caller: Caller;
  readonly isStillAllowed: HandlerCall["isStillAllowed"];
  readonly note: HandlerCall["note"];
}

interface BoundResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Readable;
}

/** Wraps an operation's handler with parsing, validation and serialization. */
export function bindOperation(operation: Operation, handler: AnyHandler): (given: Given) => Promise<BoundResponse> {
  const validate = compileRequestValidator(operation);
  const isUpload = operation.body !== undefined && "upload" in operation.body;
  return async ({ params, search, headers, body, caller, isStillAllowed, note }) => {
    const parsed = isUpload ? undefined : parseJson(body);
    const { issues, values } = validate({ params: { ...params }, query: parseSearch(search), body: parsed });
    if (issues.length > 0) {
      throw new AdminError("bad_request", issues.map(({ path, message }) => `${path} ${message}`).join("; "));
    }
    if (isUpload) refuseForeignType(operation, headers["content-type"]);
    const response = (await handler({
      ...values,
      body: isUpload ? (body ?? "") : values.body,
      headers,
      caller,
      isStillAllowed,
      note,
    })) as {
      status: number;
      headers?: Readonly<Record<string, string>>;
      body?: unknown;
    };
    const declared = operation.responses[response.status];
    if (declared !== null && declared !== undefined && "media" in declared) {
      return {
        status: response.status,
        headers: { "content-type": `${declared.media}; charset=utf-8`, ...response.headers },
        body: response.body as string | Readable,
      };
    }
    return {
      status: response.status,
      headers: { "content-type": "application/json", ...response.headers },
      body: JSON.stringify(response.body),
    };
  };
}

function parseJson(body: string | undefined): unknown {
  if (body === undefined || body === "") return undefined;
  try {
    return JSON.parse(body) as unknown;
  } catch (error) {
    throw new AdminError("bad_request", `The body is no JSON: ${(error as Error).message}`);
  }
}

/** Of repeated parameters the first counts. */
function parseSearch(search: string): Record<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(search)) if (!values.has(name)) values.set(name, value);
  return Object.fromEntries(values);
}

function refuseForeignType(operation: Operation, type: string | string[] | undefined): void {
  if (typeof type !== "string" || operation.body === undefined || !("upload" in operation.body)) return;
  const bare = type.split(";")[0]?.trim().toLowerCase() ?? "";
  // The default content type of curl and others.
  if (bare === "application/x-www-form-urlencoded" || bare === "application/x-yaml" || bare === "text/yaml") return;
  if (!operation.body.upload.includes(bare)) {
    throw new AdminError("unsupported_media_type", `The body must be ${operation.body.upload.join(" or ")}`);
  }
}

/** An error response of the admin API, thrown by operations. */
export class AdminError extends Error {
  readonly code: AdminErrorCode;
  readonly issues: readonly Issue[] | undefined;

  constructor(code: AdminErrorCode, message?: string, options: { issues?: readonly Issue[]; cause?: unknown } = {}) {
    super(message ?? ADMIN_ERRORS[code].message, { cause: options.cause });
    this.code = code;
    this.issues = options.issues;
  }

  get status(): number {
    return ADMIN_ERRORS[this.code].status;
  }
}

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
