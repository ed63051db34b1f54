import { createHash, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import * as der from "./der.ts";

/** The kind of error; `message` describes it in a sentence. */
export type AuthorityErrorCode =
  | "unreadable-certificate"
  | "unreadable-key"
  | "unsupported-key"
  | "key-mismatch"
  | "not-a-ca"
  | "expired"
  | "invalid-name"
  | "invalid-option";

export class AuthorityError extends Error {
  readonly code: AuthorityErrorCode;

  constructor(code: AuthorityErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AuthorityError";
    this.code = code;
  }
}

/** One subjectAltName entry: a DNS name as A-labels, or an address as its 4 or 16 octets. */
type SubjectName = { kind: "dns"; text: string } | { kind: "ip"; text: string; octets: Uint8Array };

/** 253 characters is the longest name DNS can carry in text form (RFC 1035 section 3.1). */
const maxDnsNameLength = 253;
const dnsName = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/**
 * The names of a leaf, in order (`dns` first) without duplicates. Case, a trailing dot, and the brackets and zone of
 * an IPv6 address are normalised; IDNs become A-labels; an address among the DNS names is treated as an address.
 * Throws {@link AuthorityError} `invalid-name` for invalid names, and for none at all.
 */
export function subjectNames(names: { dns?: readonly string[]; ip?: readonly string[] }): SubjectName[] {
  const found = new Map<string, SubjectName>();
  const add = (name: SubjectName): void => {
    const key = name.kind === "dns" ? name.text : `ip ${name.octets.join(".")}`;
    if (!found.has(key)) found.set(key, name);
  };
  for (const text of names.dns ?? []) {
    add(addressName(text) ?? dnsSubjectName(text));
  }
  for (const text of names.ip ?? []) {
    const name = addressName(text);
    if (name === undefined) throw new AuthorityError("invalid-name", `${quoted(text)} is not an IP address.`);
    add(name);
  }
  if (found.size === 0) throw new AuthorityError("invalid-name", "A leaf certificate needs at least one name.");
  return [...found.values()];
}

function dnsSubjectName(text: string): SubjectName {
  let name = text.toLowerCase();
  if (name.endsWith(".")) name = name.slice(0, -1);
  if (/[^\x00-\x7f]/.test(name)) name = domainToASCII(name);
  if (!dnsName.test(name)) throw new AuthorityError("invalid-name", `${quoted(text)} is not a host name.`);
  if (name.length > maxDnsNameLength) {
    throw new AuthorityError(
      "invalid-name",
      `${quoted(text)} is ${name.length} characters long; a host name has at most ${maxDnsNameLength}.`,
    );
  }
  return { kind: "dns", text: name };
}

function addressName(text: string): SubjectName | undefined {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  const zone = bare.indexOf("%");
  const address = zone === -1 ? bare : bare.slice(0, zone);
  const version = isIP(address);
  if (version === 0 || (version === 4 && bare !== text) || (version === 4 && zone !== -1)) return undefined;
  const octets = version === 4 ? ipv4Octets(address) : ipv6Octets(address);
  return { kind: "ip", text: address.toLowerCase(), octets };
}

const ipv4Octets = (address: string): Uint8Array => Uint8Array.from(address.split(".").map(Number));

/** The 16 octets of an address accepted by `net.isIP`. */
function ipv6Octets(address: string): Uint8Array {
  const lastColon = address.lastIndexOf(":");
  const tail = address.slice(lastColon + 1);
  let text = address;
  if (tail.includes(".")) {
    const [a = 0, b = 0, c = 0, d = 0] = ipv4Octets(tail);
    text = `${address.slice(0, lastColon + 1)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  }
  const [head = "", rest] = text.split("::");
  const before = groups(head);
  const after = groups(rest ?? "");
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

const groups = (text: string): number[] => (text === "" ? [] : text.split(":").map((group) => parseInt(group, 16)));

/** A name for an error message: quoted, escaped, and truncated. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text);
}

const oid = {
  commonName: der.objectIdentifier("2.5.4.3"),
  organizationName: der.objectIdentifier("2.5.4.10"),
  subjectKeyIdentifier: der.objectIdentifier("2.5.29.14"),
  keyUsage: der.objectIdentifier("2.5.29.15"),
  subjectAltName: der.objectIdentifier("2.5.29.17"),
  basicConstraints: der.objectIdentifier("2.5.29.19"),
  authorityKeyIdentifier: der.objectIdentifier("2.5.29.35"),
  extendedKeyUsage: der.objectIdentifier("2.5.29.37"),
  serverAuth: der.objectIdentifier("1.3.6.1.5.5.7.3.1"),
  clientAuth: der.objectIdentifier("1.3.6.1.5.5.7.3.2"),
};

/** X.520's upper bound on a common name (RFC 5280 appendix A.1, ub-common-name). */
export const maxCommonNameLength = 64;

export interface Signer {
  key: KeyObject;
  digest: "sha256" | "sha384";
  /** AlgorithmIdentifier, DER. */
  algorithm: Buffer;
}

const algorithms = {
  prime256v1: { digest: "sha256", algorithm: der.sequence(der.objectIdentifier("1.2.840.10045.4.3.2")) },
  secp384r1: { digest: "sha384", algorithm: der.sequence(der.objectIdentifier("1.2.840.10045.4.3.3")) },
  // RFC 4055 section 5: the parameters of the RSA algorithms are an explicit NULL.
  rsa: {
    digest: "sha256",
    algorithm: der.sequence(der.objectIdentifier("1.2.840.113549.1.1.11"), der.tlv(der.Tag.null)),
  },
} as const;

/** The signer for a private key, or a sentence that says why the key is unsupported. */
export function signerFor(key: KeyObject): Signer | string {
  const details = key.asymmetricKeyDetails;
  if (key.asymmetricKeyType === "rsa") {
    const bits = details?.modulusLength ?? 0;
    return bits >= 2048
      ? { key, ...algorithms.rsa }
      : `The CA key is RSA with ${bits} bits; clients refuse less than 2048.`;
  }
  const curve = details?.namedCurve;
  if (key.asymmetricKeyType === "ec" && (curve === "prime256v1" || curve === "secp384r1")) {
    return { key, ...algorithms[curve] };
  }
  const found = [key.asymmetricKeyType, curve].filter((part) => part !== undefined).join(" ");
  return `The CA key is of the kind "${found}"; EC P-256, EC P-384 and RSA are supported.`;
}

export interface SubjectKey {
  /** SubjectPublicKeyInfo, DER. */
  spki: Buffer;
  /** 20 octets, RFC 7093 section 2 method 1. */
  identifier: Buffer;
}

export function subjectKey(publicKey: KeyObject): SubjectKey {
  const spki = publicKey.export({ type: "spki", format: "der" });
  const bits = der.readElements(der.readElement(spki).content)[1]?.content.subarray(1) ?? spki;
  return { spki, identifier: createHash("sha256").update(bits).digest().subarray(0, 20) };
}

/** Name, DER: organisation, then common name, without undefined parts. */
export function distinguishedName(parts: {
  organization?: string | undefined;
  commonName?: string | undefined;
}): Buffer {
  const attributes: Buffer[] = [];
  const add = (type: Buffer, value: string | undefined): void => {
    if (value !== undefined) attributes.push(der.setOfOne(der.sequence(type, der.utf8String(value))));
  };
  add(oid.organizationName, parts.organization);
  add(oid.commonName, parts.commonName);
  return der.sequence(...attributes);
}

function extension(type: Buffer, value: Buffer, critical: boolean): Buffer {
  return critical
    ? der.sequence(type, der.booleanTrue, der.octetString(value))
    : der.sequence(type, der.octetString(value));
}

const critical = true;
const caConstraints = extension(oid.basicConstraints, der.sequence(der.booleanTrue), critical);
const leafConstraints = extension(oid.basicConstraints, der.sequence(), critical);

// keyCertSign is bit 5, cRLSign bit 6; digitalSignature is bit 0 (RFC 5280 section 4.2.1.3).
const caUsage = extension(oid.keyUsage, der.bitString(Uint8Array.of(0b0000_0110), 1), critical);
const leafUsage = extension(oid.keyUsage, der.bitString(Uint8Array.of(0b1000_0000), 7), critical);
const serverUsage = extension(oid.extendedKeyUsage, der.sequence(oid.serverAuth), !critical);
const clientUsage = extension(oid.extendedKeyUsage, der.sequence(oid.clientAuth), !critical);

const subjectKeyIdentifier = (identifier: Buffer): Buffer =>
  extension(oid.subjectKeyIdentifier, der.octetString(identifier), !critical);

const authorityKeyIdentifier = (identifier: Uint8Array): Buffer =>
  extension(oid.authorityKeyIdentifier, der.sequence(der.contextTag(0, identifier, true)), !critical);

function subjectAltName(names: readonly SubjectName[], isCritical: boolean): Buffer {
  const general = names.map((name) =>
    name.kind === "dns"
      ? der.contextTag(2, Buffer.from(name.text, "latin1"), true)
      : der.contextTag(7, name.octets, true),
  );
  return extension(oid.subjectAltName, der.sequence(...general), isCritical);
}

interface Contents {
  issuer: Uint8Array;
  subject: Uint8Array;
  notBefore: Date;
  notAfter: Date;
  spki: Uint8Array;
  extensions: readonly Buffer[];
}

function certificate(contents: Contents, signer: Signer): Buffer {
  const version3 = der.contextTag(0, der.tlv(der.Tag.integer, Uint8Array.of(2)));
  const tbs = der.sequence(
    version3,
    serialNumber(),
    signer.algorithm,
    contents.issuer,
    der.sequence(der.time(contents.notBefore), der.time(contents.notAfter)),
    contents.subject,
    contents.spki,
    der.contextTag(3, der.sequence(...contents.extensions)),
  );
  return der.sequence(tbs, signer.algorithm, der.bitString(sign(signer.digest, tbs, signer.key)));
}

/** 128 random bits; drawn again if zero, which is not positive. */
function serialNumber(): Buffer {
  for (;;) {
    const bits = randomBytes(16);
    if (bits.some((octet) => octet !== 0)) return der.unsignedInteger(bits);
  }
}

/** A self-signed CA certificate, DER. */
export function caCertificate(options: {
  subject: Buffer;
  key: SubjectKey;
  signer: Signer;
  notBefore: Date;
  notAfter: Date;
}): Buffer {
  return certificate(
    {
      issuer: options.subject,
      subject: options.subject,
      notBefore: options.notBefore,
      notAfter: options.notAfter,
      spki: options.key.spki,
      extensions: [
        caConstraints,
        caUsage,
        subjectKeyIdentifier(options.key.identifier),
        authorityKeyIdentifier(options.key.identifier),
      ],
    },
    options.signer,
  );
}

/** A server certificate for `names`, DER. `issuer` is the raw Name of the CA. */
export function leafCertificate(options: {
  issuer: Uint8Array;
  issuerKeyIdentifier: Uint8Array;
  signer: Signer;
  purpose: "server" | "client";
  names: readonly SubjectName[];
  key: SubjectKey;
  notBefore: Date;
  notAfter: Date;
}): Buffer {
  const commonName = options.names.find((name) => name.text.length <= maxCommonNameLength)?.text;
  return certificate(
    {
      issuer: options.issuer,
      subject: distinguishedName({ commonName }),
      notBefore: options.notBefore,
      notAfter: options.notAfter,
      spki: options.key.spki,
      extensions: [
        leafConstraints,
        leafUsage,
        options.purpose === "client" ? clientUsage : serverUsage,
        // RFC 5280 section 4.2.1.6: critical exactly when the subject is empty.
        subjectAltName(options.names, commonName === undefined),
        subjectKeyIdentifier(options.key.identifier),
        authorityKeyIdentifier(options.issuerKeyIdentifier),
      ],
    },
    options.signer,
  );
}

/** Facts about a CA certificate that node's X509Certificate lacks. */
export interface IssuerFacts {
  /** The subject, Name, DER, byte for byte. */
  subject: Uint8Array;
  /** The subject key identifier, if any. */
  keyIdentifier: Uint8Array | undefined;
}

/** Reads {@link IssuerFacts} from a certificate in DER. Throws a RangeError for malformed bytes. */
export function issuerFacts(certificateDer: Uint8Array): IssuerFacts {
  const tbs = der.readElement(der.readElement(certificateDer).content);
  const fields = der.readElements(tbs.content);
  if (fields[0]?.tag === 0xa0) fields.shift();
  const subject = fields[4];
  if (subject === undefined) throw new RangeError("the certificate has no subject field");
  const facts: IssuerFacts = { subject: subject.raw, keyIdentifier: undefined };
  const extensions = fields.find((field) => field.tag === 0xa3);
  if (extensions === undefined) return facts;
  for (const item of der.readElements(der.readElement(extensions.content).content)) {
    const parts = der.readElements(item.content);
    const type = parts[0];
    const value = parts.at(-1);
    if (type === undefined || value?.tag !== der.Tag.octetString) continue;
    if (oid.subjectKeyIdentifier.equals(type.raw)) facts.keyIdentifier = der.readElement(value.content).content;
  }
  return facts;
}
