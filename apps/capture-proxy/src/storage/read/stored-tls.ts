import type { TlsInfo } from "@headworks/capture-contract";
import { parsed } from "./stored-json.ts";

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

export function tlsText(tls: TlsInfo): string {
  return JSON.stringify(NAMES.map((name) => tls[name]));
}

/** Default for entries of earlier versions. */
const NOT_KNOWN: Pick<TlsInfo, "upstream_client_certificate"> = { upstream_client_certificate: null };

/** Reads the array of {@link tlsText}, or the object that earlier versions wrote. */
export function storedTls(value: unknown): TlsInfo | null {
  const tls = parsed<TlsInfo | readonly TlsInfo[keyof TlsInfo][]>(value);
  if (tls === null) return null;
  if (!Array.isArray(tls)) return { ...NOT_KNOWN, ...(tls as Partial<TlsInfo>) } as TlsInfo;
  return Object.fromEntries(NAMES.map((name, at) => [name, tls[at] ?? null])) as unknown as TlsInfo;
}
