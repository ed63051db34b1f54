import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { getCACertificates } from "node:tls";
import { certOperations } from "@headworks/capture-contract";
import type { CertificateInfo } from "@headworks/capture-contract";
import { isLoopback } from "@headworks/host-patterns";
import { AuthorityError, CertificateAuthority } from "@headworks/tls-authority";
import { callJson, shownUrl } from "./api-connection.ts";
import { authorityPaths } from "./authority-files.ts";
import type { Finding, CheckContext } from "./doctor.ts";

const SOON_MS = 30 * 86_400_000;

/** Whether the CA's files are there, belong together, are private and valid. */
export function checkAuthority({ places, nowMs }: CheckContext): readonly Finding[] {
  const name = "CA";
  const { certificate, key } = authorityPaths(places.certificateDirectory);
  if (!existsSync(certificate)) {
    return [{ name, status: "skip", detail: "there is none yet; it is created at the first start" }];
  }
  if (!existsSync(key)) {
    return [
      {
        name,
        status: "fail",
        detail: `the private key ${key} is missing`,
        advice: `restore it, or remove ${certificate} to create a new CA`,
      },
    ];
  }
  const findings = [validity(certificate, key, nowMs)];
  if (process.platform !== "win32" && (statSync(key).mode & 0o077) !== 0) {
    findings.push({
      name,
      status: "fail",
      detail: `other users can read the private key ${key}`,
      advice: `chmod 600 ${key}`,
    });
  }
  return findings;
}

function validity(certificate: string, key: string, nowMs: number): Finding {
  const name = "CA";
  let authority: CertificateAuthority;
  try {
    const files = { certificatePem: readFileSync(certificate, "utf8"), keyPem: readFileSync(key, "utf8") };
    authority = CertificateAuthority.load(files, new Date(nowMs));
  } catch (error) {
    const advice =
      error instanceof AuthorityError && error.code === "expired"
        ? "run `weir ca renew`"
        : "run `weir ca import`, or remove both files and start again";
    return { name, status: "fail", detail: `${certificate} cannot be used: ${(error as Error).message}`, advice };
  }
  const detail = `${authority.subject}, valid until ${authority.notAfter.toISOString().slice(0, 10)}`;
  if (authority.notBefore.getTime() > nowMs) {
    return { name, status: "fail", detail: `${detail}, but not yet`, advice: "correct the clock" };
  }
  if (authority.notAfter.getTime() - nowMs < SOON_MS) {
    return { name, status: "warn", detail, advice: "run `weir ca renew`, then trust the new CA" };
  }
  return { name, status: "ok", detail };
}

/**
 * Whether the running service signs with the CA of these files: a CA imported meanwhile is used from the next start on,
 * and clients that already trust it refuse the old one. No finding for a service with other files.
 */
export async function checkAuthorityInUse({ places, health, address }: CheckContext): Promise<readonly Finding[]> {
  const { certificate } = authorityPaths(places.certificateDirectory);
  const found = certificateIn(certificate);
  if (!health || !found || !isThisMachine(new URL(address.baseUrl).hostname)) return [];
  const { value } = await callJson(address, certOperations.getCertificateInfo, {});
  const used = value as CertificateInfo;
  if (used.path !== certificate || used.fingerprint_sha256 === found.fingerprint256) return [];
  return [
    {
      name: "CA",
      status: "fail",
      detail: `the running Weir signs with a CA other than ${certificate}: ${used.subject}, fingerprint ${used.fingerprint_sha256}`,
      advice: "restart it to use the current file",
    },
  ];
}

/** Whether the running service uses the files that these checks examine; no finding if it does. */
export async function checkServiceFiles({ places, health, address }: CheckContext): Promise<readonly Finding[]> {
  if (!health || !isThisMachine(new URL(address.baseUrl).hostname)) return [];
  const { value } = await callJson(address, certOperations.getCertificateInfo, {});
  const { path } = value as CertificateInfo;
  const { certificate } = authorityPaths(places.certificateDirectory);
  if (path === certificate) return [];
  return [
    {
      name: "Service",
      status: "warn",
      detail: `the Weir at ${shownUrl(address)} uses another data directory than these checks: its CA is ${path}, not ${certificate}`,
      advice: "specify its data directory with --data-dir, or another address with --api-url",
    },
  ];
}

/** Paths of another machine cannot be compared. */
function isThisMachine(host: string): boolean {
  return host === "localhost" || isLoopback(host.replace(/^\[|\]$/g, ""));
}

function certificateIn(path: string): X509Certificate | undefined {
  try {
    return new X509Certificate(readFileSync(path));
  } catch {
    return undefined;
  }
}

/** Whether the system trusts the CA. Only a warning: `weir run` needs no system-wide trust. */
export function checkAuthorityTrust({ places }: CheckContext): Finding {
  const name = "System trust";
  const { certificate } = authorityPaths(places.certificateDirectory);
  if (!existsSync(certificate)) return { name, status: "skip", detail: "there is no CA yet" };
  const authority = certificateIn(certificate);
  if (authority === undefined) return { name, status: "skip", detail: "the CA cannot be read" };
  if (isTrusted(authority)) return { name, status: "ok", detail: "the system trusts the CA" };
  return {
    name,
    status: "warn",
    detail: "the system does not trust the CA",
    advice: "`weir ca install-help` shows how; `weir run -- PROGRAM` does not need it",
  };
}

function isTrusted(authority: X509Certificate): boolean {
  return getCACertificates("system").some((pem) => {
    const root = new X509Certificate(pem);
    return (
      root.fingerprint256 === authority.fingerprint256 ||
      (authority.checkIssued(root) && authority.verify(root.publicKey))
    );
  });
}
