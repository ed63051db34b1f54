import type { TlsInfo } from "@headworks/capture-contract";
import type { RawFields } from "@headworks/http1";

/** Column order: member names in every entry would double its size. */
const NAMES = [
  "client_version",
  "client_cipher",
  "sni",
  "upstream_version",
  "upstream_cipher",
  "upstream_verified",
  "upstream_subject",
  "upstream_issuer",
  "upstream_valid_to",
  "upstream_client_certificate",
] as const satisfies readonly (keyof TlsInfo)[];

/** Default for entries of earlier versions. */
const NOT_KNOWN: Pick<TlsInfo, "upstream_client_certificate"> = { upstream_client_certificate: null };

/** JSON from a trusted column. */
export function parsed<T>(value: unknown): T | null {
  return typeof value === "string" ? (JSON.parse(value) as T) : null;
}

/**
 * Fields from a trusted column: a JSON array or field lines (`FieldLines`).
 * @throws SyntaxError if the file is corrupt
 */
export function storedFields(value: unknown): RawFields | null {
  if (typeof value !== "string") return null;
  return value.startsWith("[") ? (JSON.parse(value) as RawFields) : fieldsOfLines(value);
}

function fieldsOfLines(lines: string): RawFields {
  const fields: RawFields = [];
  for (let at = 0; at < lines.length;) {
    const nameEnd = lines.indexOf(": ", at);
    const lineEnd = lines.indexOf("\r\n", at);
    if (nameEnd < 0 || lineEnd < nameEnd) throw new SyntaxError("Fields in the store are damaged");
    fields.push(lines.slice(at, nameEnd), lines.slice(nameEnd + 2, lineEnd));
    at = lineEnd + 2;
  }
  return fields;
}

export function tlsText(tls: TlsInfo): string {
  return JSON.stringify(NAMES.map((name) => tls[name]));
}

/** Reads the array of {@link tlsText}, or the object that earlier versions wrote. */
export function storedTls(value: unknown): TlsInfo | null {
  const tls = parsed<TlsInfo | readonly TlsInfo[keyof TlsInfo][]>(value);
  if (tls === null) return null;
  if (!Array.isArray(tls)) return { ...NOT_KNOWN, ...(tls as Partial<TlsInfo>) } as TlsInfo;
  return Object.fromEntries(NAMES.map((name, at) => [name, tls[at] ?? null])) as unknown as TlsInfo;
}
