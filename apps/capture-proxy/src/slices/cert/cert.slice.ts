import type { certOperations } from "@headworks/capture-contract";
import type { CertificateAuthority } from "@headworks/tls-authority";
import type { SyntheticResponse } from "#exchange/phases.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { type CertOperationsParts, createCertOperations } from "./cert.operations.ts";
import { mobileConfig } from "./mobile-config.ts";
import { setupData, type SetupData } from "./setup-data.ts";
import { CHECK_SVG, ICON_SVG, renderSetupPage, setupPagePolicy } from "./setup-page.ts";

export { AuthorityStoreError, openAuthorityStore } from "./authority-store.ts";
export type { AuthorityStore } from "./authority-store.ts";

/** The slice and its pages for the proxy and the API's port. */
export interface CertSlice extends Slice<typeof certOperations> {
  /** For requests to `http://weir/` and to the proxy's own address. */
  readonly handleMagicHost: (request: OwnRequest) => SyntheticResponse;
  /** The same page for `/setup` on the API's port. */
  readonly setupPage: {
    readonly path: string;
    readonly render: () => { readonly html: string; readonly contentSecurityPolicy: string };
  };
}

export function createCertSlice(host: SliceHost, parts: CertOperationsParts): CertSlice {
  const { authority } = parts;
  const data = () => setupData(host, authority);
  const links = {
    pem: "/api/cert/ca",
    der: "/api/cert/ca?format=der",
    mobileConfig: "/api/cert/mobileconfig",
    check: "https://weir/check",
    ui: "/",
  };
  return {
    name: "cert",
    operations: createCertOperations(host, parts),
    handleMagicHost: (request) => handleMagicHost({ authority: () => authority.current, data }, request),
    setupPage: {
      path: "/setup",
      render: () => ({ html: renderSetupPage(data(), links), contentSecurityPolicy: setupPagePolicy() }),
    },
  };
}

/** A request addressed to the proxy itself. */
interface OwnRequest {
  readonly method: string;
  readonly path: string;
  /** True for a request over intercepted TLS. */
  readonly secure: boolean;
}

interface MagicHostParts {
  readonly authority: () => CertificateAuthority;
  readonly data: () => SetupData;
}

/**
 * Responds to `http://weir/` and the proxy's own address: the set-up page, certificate downloads and the test picture.
 * Read-only and without access to traffic, so every proxy client may see it.
 */
function handleMagicHost(parts: MagicHostParts, request: OwnRequest): SyntheticResponse {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return plain(405, "This page is read-only\n", ["Allow", "GET, HEAD"]);
  }
  const path = request.path.split("?", 1)[0] ?? "/";
  switch (path) {
    case "/":
      return page(parts.data());
    case "/cert.pem":
      return download(parts.authority().certificatePem, "application/x-x509-ca-cert", "weir-ca.pem");
    case "/cert.crt":
      return download(parts.authority().certificateDer, "application/x-x509-ca-cert", "weir-ca.crt");
    case "/weir.mobileconfig":
      return download(mobileConfig(parts.authority()), "application/x-apple-aspen-config", "weir.mobileconfig");
    case "/qr.svg":
      return respond(200, parts.data().qrSvg, ["Content-Type", "image/svg+xml"]);
    case "/icon.svg":
      return respond(200, ICON_SVG, ["Content-Type", "image/svg+xml"]);
    case "/check":
      return check(request.secure);
    default:
      return plain(404, "Not found. The set-up page is at http://weir/\n", []);
  }
}

/** The picture proves trust only over TLS; over plain HTTP the test must not look passed. */
function check(isSecure: boolean): SyntheticResponse {
  if (!isSecure) return plain(404, "Open https://weir/check, so that the certificate is tested too\n", []);
  // The set-up page on the API's port loads it cross-origin.
  return respond(200, CHECK_SVG, ["Content-Type", "image/svg+xml", "Cross-Origin-Resource-Policy", "cross-origin"]);
}

function page(data: SetupData): SyntheticResponse {
  const links = { pem: "/cert.pem", der: "/cert.crt", mobileConfig: "/weir.mobileconfig", check: "https://weir/check" };
  const fields = [
    "Content-Type",
    "text/html; charset=utf-8",
    "Content-Security-Policy",
    setupPagePolicy(),
    "X-Frame-Options",
    "DENY",
    "Referrer-Policy",
    "no-referrer",
  ];
  return respond(200, renderSetupPage(data, links), fields);
}

function download(body: string | Buffer, type: string, name: string): SyntheticResponse {
  return respond(200, body, ["Content-Type", type, "Content-Disposition", `attachment; filename="${name}"`]);
}

function plain(status: number, text: string, fields: readonly string[]): SyntheticResponse {
  return respond(status, text, ["Content-Type", "text/plain; charset=utf-8", ...fields]);
}

function respond(status: number, body: string | Buffer, fields: readonly string[]): SyntheticResponse {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  return {
    status,
    fields: [
      ...fields,
      "Content-Length",
      String(bytes.length),
      "Cache-Control",
      "no-store",
      "X-Content-Type-Options",
      "nosniff",
    ],
    body: bytes,
  };
}
