import type { TlsInfo } from "@headworks/capture-contract";
import { parsed } from "./stored-json.ts";

/** In the order in which a column has their values: every entry has one, and names would be half of it. */
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

/** Facts of TLS for a column. */
export function tlsText(tls: TlsInfo): string {
  return JSON.stringify(NAMES.map((name) => tls[name]));
}

/** What earlier versions did not write. */
const NOT_KNOWN: Pick<TlsInfo, "upstream_client_certificate"> = { upstream_client_certificate: null };

/** Facts of a column: the array of {@link tlsText}, or an object as earlier versions wrote it. */
export function storedTls(value: unknown): TlsInfo | null {
  const tls = parsed<TlsInfo | readonly TlsInfo[keyof TlsInfo][]>(value);
  if (tls === null) return null;
  if (!Array.isArray(tls)) return { ...NOT_KNOWN, ...(tls as Partial<TlsInfo>) } as TlsInfo;
  return Object.fromEntries(NAMES.map((name, at) => [name, tls[at] ?? null])) as unknown as TlsInfo;
}
