import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from "node:crypto";
import {
  AuthorityError,
  caCertificate,
  distinguishedName,
  issuerFacts,
  type IssuerFacts,
  leafCertificate,
  maxCommonNameLength,
  type Signer,
  signerFor,
  subjectKey,
  type SubjectKey,
  subjectNames,
} from "./certificate.ts";

/** One PEM block (RFC 7468) with a final newline. */
function toPem(label: "CERTIFICATE", bytes: Uint8Array): string {
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  const lines = base64.match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/** The certificate blocks of a PEM text, in order, with their markers; other text is skipped. */
function certificateBlocks(text: string): string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
}

const dayMs = 86_400_000;

/** For clients with a slow clock. */
const clockSkewMs = dayMs;
const defaultCaDays = 1826;
const maxCaDays = 3653;

/** The CA/Browser Forum's limit for public leaves since March 2026 is 200 days; some clients apply it to all. */
const maxLeafDays = 199;
const serverAuth = "1.3.6.1.5.5.7.3.1";

/** A CA as two PEM texts: certificate (optionally followed by its issuers) and unencrypted private key. */
export interface AuthorityFiles {
  certificatePem: string;
  keyPem: string;
}

/** Names have at most 64 characters, `validDays` is 1 to 3653. */
export interface CreateOptions {
  commonName?: string;
  organization?: string;
  notBefore?: Date;
  validDays?: number;
}

/** The names of a leaf; at least one in total. */
export interface LeafNames {
  dns?: readonly string[];
  ip?: readonly string[];
}

/** `notBefore`: a day ago by default; `validDays`: 1 to 199. A `client` leaf has a key of its own. */
export interface LeafOptions {
  purpose?: "server" | "client";
  notBefore?: Date;
  validDays?: number;
}

/** An issued certificate for `tls.createSecureContext` (`cert: chainPem, key: keyPem`). */
export interface Leaf {
  certificatePem: string;
  keyPem: string;
  /** The leaf, then the CA certificate and its loaded issuers. */
  chainPem: string;
  notBefore: Date;
  notAfter: Date;
}

/**
 * A certificate authority with its key in this process. Issuing is synchronous and takes well under a millisecond;
 * all leaves of the process share one EC P-256 key.
 */
export class CertificateAuthority {
  /** The CA certificate without its issuers. */
  readonly certificatePem: string;
  readonly certificateDer: Buffer;
  /** SHA-256 over the DER, as upper-case hexadecimal pairs with colons. */
  readonly fingerprintSha256: string;
  /** The subject on one line, such as `O=Weir, CN=Weir CA 09af`; special characters as in RFC 2253. */
  readonly subject: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly #signer: Signer;
  readonly #facts: IssuerFacts;
  readonly #keyIdentifier: Uint8Array;
  readonly #chainPem: string;

  private constructor(certificate: X509Certificate, signer: Signer, facts: IssuerFacts, issuersPem: string) {
    this.certificateDer = certificate.raw;
    this.certificatePem = toPem("CERTIFICATE", certificate.raw);
    this.fingerprintSha256 = certificate.fingerprint256;
    this.subject = certificate.subject.split("\n").join(", ");
    this.notBefore = certificate.validFromDate;
    this.notAfter = certificate.validToDate;
    this.#signer = signer;
    this.#facts = facts;
    this.#keyIdentifier = facts.keyIdentifier ?? subjectKey(certificate.publicKey).identifier;
    this.#chainPem = this.certificatePem + issuersPem;
  }

  /**
   * Creates a self-signed CA with an EC P-256 key, valid for five years by default. The default name contains random
   * digits, so that CAs of several machines are distinguishable in a trust store.
   */
  static create(options: CreateOptions = {}): CertificateAuthority {
    const commonName = options.commonName ?? `Weir CA ${randomBytes(2).toString("hex")}`;
    const organization = options.organization ?? "Weir";
    checkNamePart("common name", commonName);
    checkNamePart("organization", organization);
    const notBefore = wholeSeconds(options.notBefore ?? new Date(Date.now() - clockSkewMs));
    const notAfter = endOf(notBefore, options.validDays ?? defaultCaDays, maxCaDays);
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const signer = usableSigner(privateKey);
    const subject = distinguishedName({ organization, commonName });
    const bytes = caCertificate({ subject, key: subjectKey(publicKey), signer, notBefore, notAfter });
    return new CertificateAuthority(new X509Certificate(bytes), signer, issuerFacts(bytes), "");
  }

  /**
   * A CA from files: EC P-256, EC P-384 or RSA of 2048 bits and more. Throws {@link AuthorityError} with a sentence
   * when the files cannot be read, the key does not belong to the certificate, the certificate may not sign server
   * certificates, or it has expired at `now`. A CA that is not valid yet is accepted.
   */
  static load(files: AuthorityFiles, now: Date = new Date()): CertificateAuthority {
    const [block, ...issuers] = certificateBlocks(files.certificatePem);
    const certificate = readCertificate(block);
    const key = readPrivateKey(files.keyPem);
    const signer = usableSigner(key);
    if (!certificate.checkPrivateKey(key)) {
      throw new AuthorityError("key-mismatch", "The private key does not belong to the CA certificate.");
    }
    const facts = issuerFacts(certificate.raw);
    checkIsAuthority(certificate);
    const end = certificate.validToDate;
    if (end.getTime() <= now.getTime()) {
      throw new AuthorityError("expired", `The CA certificate expired on ${end.toISOString().slice(0, 10)}.`);
    }
    const issuersPem = issuers.map((issuer) => toPem("CERTIFICATE", readCertificate(issuer).raw)).join("");
    return new CertificateAuthority(certificate, signer, facts, issuersPem);
  }

  /** Whether the CA has expired at `nowMs` (Unix time) or will within `withinDays`. */
  isExpiring(nowMs: number, withinDays: number): boolean {
    return this.notAfter.getTime() - nowMs <= withinDays * dayMs;
  }

  /** The private key, PKCS #8. A method, so that no serializer or log line reveals it by accident. */
  keyPem(): string {
    return privatePem(this.#signer.key);
  }

  /**
   * Issues a certificate for `names` (see {@link subjectNames}), within the validity of the CA. Throws {@link
   * AuthorityError}: `invalid-name`, `invalid-option`, or `expired` if the CA has expired.
   */
  issueLeaf(names: LeafNames, options: LeafOptions = {}): Leaf {
    const wanted = options.notBefore ?? new Date(Date.now() - clockSkewMs);
    const notBefore = wholeSeconds(wanted.getTime() < this.notBefore.getTime() ? this.notBefore : wanted);
    const wantedEnd = endOf(notBefore, options.validDays ?? maxLeafDays, maxLeafDays);
    const notAfter = wantedEnd.getTime() > this.notAfter.getTime() ? this.notAfter : wantedEnd;
    const usableFrom = options.notBefore === undefined ? Date.now() : notBefore.getTime();
    if (notAfter.getTime() <= usableFrom) {
      throw new AuthorityError("expired", `The CA certificate expired on ${this.notAfter.toISOString().slice(0, 10)}.`);
    }
    const { purpose = "server" } = options;
    const leafKey = purpose === "server" ? sharedLeafKey() : newLeafKey();
    const bytes = leafCertificate({
      issuer: this.#facts.subject,
      issuerKeyIdentifier: this.#keyIdentifier,
      signer: this.#signer,
      purpose,
      names: subjectNames(names),
      key: leafKey.subjectKey,
      notBefore,
      notAfter,
    });
    const certificatePem = toPem("CERTIFICATE", bytes);
    return { certificatePem, keyPem: leafKey.pem, chainPem: certificatePem + this.#chainPem, notBefore, notAfter };
  }
}

interface LeafKey {
  subjectKey: SubjectKey;
  pem: string;
}

let leafKeyOfProcess: LeafKey | undefined;

function sharedLeafKey(): LeafKey {
  return (leafKeyOfProcess ??= newLeafKey());
}

function newLeafKey(): LeafKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { subjectKey: subjectKey(publicKey), pem: privatePem(privateKey) };
}

const privatePem = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();

function readCertificate(block: string | undefined): X509Certificate {
  if (block === undefined) {
    throw new AuthorityError("unreadable-certificate", "The CA certificate file holds no PEM certificate.");
  }
  try {
    return new X509Certificate(block);
  } catch (cause) {
    throw new AuthorityError("unreadable-certificate", "The CA certificate cannot be read: it is damaged.", { cause });
  }
}

function readPrivateKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    const encrypted = pem.includes("ENCRYPTED");
    const reason = encrypted
      ? "The CA private key is encrypted; give it without a passphrase."
      : "The CA private key cannot be read: it is not an unencrypted PEM private key.";
    throw new AuthorityError("unreadable-key", reason, { cause });
  }
}

function usableSigner(key: KeyObject): Signer {
  const signer = signerFor(key);
  if (typeof signer === "string") throw new AuthorityError("unsupported-key", signer);
  return signer;
}

function checkIsAuthority(certificate: X509Certificate): void {
  // OpenSSL's verdict: basic constraints must say CA, and a key usage must not forbid signing certificates.
  if (!certificate.ca) {
    throw new AuthorityError(
      "not-a-ca",
      "The certificate is not a CA certificate: its basic constraints or key usage do not allow signing certificates.",
    );
  }
  const purposes: readonly string[] | undefined = certificate.keyUsage;
  if (purposes !== undefined && !purposes.includes(serverAuth)) {
    throw new AuthorityError("not-a-ca", "The CA certificate is limited to purposes other than TLS servers.");
  }
}

function checkNamePart(what: string, value: string): void {
  if (value.trim() === "" || value.length > maxCommonNameLength || /[\x00-\x1f\x7f]/.test(value)) {
    throw new AuthorityError(
      "invalid-option",
      `The ${what} of a CA has 1 to ${maxCommonNameLength} printable characters.`,
    );
  }
}

/** The last second of a number of days; both ends count (RFC 5280 section 4.1.2.5). */
function endOf(notBefore: Date, validDays: number, maxDays: number): Date {
  if (!Number.isSafeInteger(validDays) || validDays < 1 || validDays > maxDays) {
    throw new AuthorityError("invalid-option", `The validity must be a whole number of days from 1 to ${maxDays}.`);
  }
  return new Date(notBefore.getTime() + validDays * dayMs - 1000);
}

function wholeSeconds(date: Date): Date {
  const ms = date.getTime();
  if (Number.isNaN(ms)) throw new AuthorityError("invalid-option", "The start of the validity is not a date.");
  return new Date(Math.floor(ms / 1000) * 1000);
}
