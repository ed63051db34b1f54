import { X509Certificate } from "node:crypto";
import type { CertificateInfo } from "@headworks/capture-contract";
import { hostPortText, isLoopback } from "@headworks/host-patterns";
import { renderSVG } from "uqr";
import type { SliceHost } from "#slice.ts";
import type { AuthorityStore } from "./authority-store.ts";
import { environmentGuide, platformGuides } from "./setup-guide.ts";
import type { PlatformGuide } from "./setup-guide.ts";

const SOON_DAYS = 30;

export interface SetupData {
  /** `http://127.0.0.1:8888`, the address for programs on this machine. */
  readonly proxyAddress: string;
  readonly apiAddress: string;
  /** `http://weir/` */
  readonly magicHost: string;
  /** The address a phone on the same network opens: the proxy itself, which responds with the set-up page. */
  readonly deviceAddress: string;
  readonly deviceHost: string;
  readonly devicePort: number;
  /** True if the proxy listens on loopback only, out of reach of other devices. */
  readonly isLocalOnly: boolean;
  readonly qrSvg: string;
  readonly platforms: readonly PlatformGuide[];
  readonly environment: readonly { readonly name: string; readonly value: string }[];
  readonly certificate: CertificateInfo;
}

export function setupData(
  host: Pick<SliceHost, "addresses" | "settings" | "clock">,
  authority: AuthorityStore,
): SetupData {
  const addresses = host.addresses();
  const proxy = new URL(addresses.proxy);
  const devicePort = Number(proxy.port === "" ? 80 : proxy.port);
  const deviceHost = host.settings.shownHost();
  const proxyUrl = `http://${localHost(proxy.hostname)}:${devicePort}`;
  const deviceAddress = `http://${hostPortText(deviceHost, devicePort)}/`;
  const facts = { caPath: authority.certificatePath, proxyUrl, deviceHost, devicePort };
  return {
    proxyAddress: proxyUrl,
    apiAddress: addresses.api,
    magicHost: "http://weir/",
    deviceAddress,
    deviceHost,
    devicePort,
    isLocalOnly: isLoopback(unbracketed(proxy.hostname)) || proxy.hostname === "localhost",
    qrSvg: renderSVG(deviceAddress, { ecc: "M", border: 2, pixelSize: 6 }),
    platforms: platformGuides(facts),
    environment: environmentGuide(facts),
    certificate: certificateInfo(authority, host.clock.now()),
  };
}

export function certificateInfo(store: AuthorityStore, nowMs: number): CertificateInfo {
  const { current } = store;
  return {
    subject: current.subject,
    fingerprint_sha256: current.fingerprintSha256,
    serial: new X509Certificate(current.certificateDer).serialNumber,
    not_before: current.notBefore.toISOString(),
    not_after: current.notAfter.toISOString(),
    expires_soon: current.isExpiring(nowMs, SOON_DAYS),
    path: store.certificatePath,
    imported: store.isImported,
  };
}

/** Programs on this machine reach a wildcard listener through loopback. */
function localHost(hostname: string): string {
  if (hostname === "0.0.0.0") return "127.0.0.1";
  return hostname === "[::]" ? "[::1]" : hostname;
}

function unbracketed(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}
