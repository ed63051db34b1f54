import type { X509Certificate } from "node:crypto";
import type { Consumer } from "@headworks/gateway-contract";
import type { ConsumerIdentity } from "#request/context.ts";
import { credentialsOf, identityOf } from "./consumer-identity.ts";
import { INVALID, recognitionOf, type Recognition } from "./credential-reader.ts";

/** Consumers by client certificate, which the listener has already verified. */
export class ClientCertificates {
  readonly #byFingerprint = new Map<string, ConsumerIdentity>();
  readonly #bySubject = new Map<string, ConsumerIdentity>();
  /** A connection presents the same certificate with every request. */
  readonly #known = new WeakMap<X509Certificate, Recognition>();

  constructor(consumers: readonly Consumer[]) {
    for (const { consumer, credential } of credentialsOf(consumers, "mtls")) {
      const identity = identityOf(consumer, "mtls");
      if (credential.fingerprint !== undefined) {
        this.#byFingerprint.set(plainFingerprint(credential.fingerprint), identity);
      } else if (credential.subject !== undefined) {
        this.#bySubject.set(credential.subject, identity);
      }
    }
  }

  get size(): number {
    return this.#byFingerprint.size + this.#bySubject.size;
  }

  /** The consumer of a certificate; one without a consumer is refused. */
  read(certificate: X509Certificate): Recognition {
    const known = this.#known.get(certificate) ?? this.#find(certificate);
    this.#known.set(certificate, known);
    return known;
  }

  #find(certificate: X509Certificate): Recognition {
    const exact = this.#byFingerprint.get(plainFingerprint(certificate.fingerprint256));
    if (exact !== undefined || this.#bySubject.size === 0) return recognitionOf(exact);
    const name = commonNameOf(certificate);
    return name === undefined ? INVALID : recognitionOf(this.#bySubject.get(name));
  }
}

/** Hexadecimal digits without colons, in lower case. */
export function plainFingerprint(text: string): string {
  return text.replaceAll(":", "").toLowerCase();
}

/** The common name of the subject; undefined unless exactly one. */
function commonNameOf(certificate: X509Certificate): string | undefined {
  // Parsing the printed subject would be open to injection.
  const name: unknown = certificate.toLegacyObject().subject.CN;
  return typeof name === "string" ? name : undefined;
}
