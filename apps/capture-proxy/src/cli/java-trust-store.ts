import { der, derObjectId } from "./der-writer.ts";

const DATA = "1.2.840.113549.1.7.1";
const CERTIFICATE_BAG = "1.2.840.113549.1.12.10.1.3";
const X509_CERTIFICATE = "1.2.840.113549.1.9.22.1";
const FRIENDLY_NAME = "1.2.840.113549.1.9.20";
/** Java takes a certificate without a key for trusted only if it carries this attribute. */
const TRUSTED_KEY_USAGE = "2.16.840.1.113894.746875.1.1";
const ANY_EXTENDED_KEY_USAGE = "2.5.29.37.0";

const sequence = (...content: readonly Uint8Array[]): Buffer => der(0x30, ...content);
const set = (...content: readonly Uint8Array[]): Buffer => der(0x31, ...content);
const octets = (...content: readonly Uint8Array[]): Buffer => der(0x04, ...content);
const explicit = (...content: readonly Uint8Array[]): Buffer => der(0xa0, ...content);

/**
 * A PKCS #12 file (RFC 7292) of trusted certificates (DER), as Java's `PKCS12` key store reads it without a password:
 * certificates are public, so nothing is encrypted, and without a password there is no integrity code either.
 */
export function javaTrustStore(certificates: readonly Uint8Array[]): Buffer {
  const bags = certificates.map((certificate, index) => certificateBag(certificate, `trusted-${index}`));
  const safeContents = sequence(...bags);
  const authenticatedSafe = sequence(dataContent(safeContents));
  return sequence(der(0x02, Buffer.from([3])), dataContent(authenticatedSafe));
}

function dataContent(content: Uint8Array): Buffer {
  return sequence(derObjectId(DATA), explicit(octets(content)));
}

function certificateBag(certificate: Uint8Array, alias: string): Buffer {
  const bag = sequence(derObjectId(X509_CERTIFICATE), explicit(octets(certificate)));
  const name = Buffer.from(alias, "utf16le").swap16();
  const attributes = set(
    sequence(derObjectId(FRIENDLY_NAME), set(der(0x1e, name))),
    sequence(derObjectId(TRUSTED_KEY_USAGE), set(derObjectId(ANY_EXTENDED_KEY_USAGE))),
  );
  return sequence(derObjectId(CERTIFICATE_BAG), explicit(bag), attributes);
}
