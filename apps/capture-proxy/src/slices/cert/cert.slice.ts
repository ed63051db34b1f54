import { createHash } from "node:crypto";
import type { certOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import type { CertificateAuthority } from "@headworks/tls-authority";
import { ApiError } from "#api/api-error.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { type AuthorityStore, AuthorityStoreError } from "./authority-store.ts";
import { certificateInfo, setupData, type SetupData } from "./setup-guide.ts";
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

interface ProbeStep {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** Sends one HTTPS request through a proxy with one CA; returns the steps up to a failure. Never rejects. */
export type InterceptionProbe = (request: {
  readonly proxyAddress: string;
  readonly url: string;
  readonly caPem: string;
  readonly signal: AbortSignal;
}) => Promise<ProbeStep[]>;

export interface CertOperationsParts {
  readonly authority: AuthorityStore;
  readonly probe: InterceptionProbe;
}

const CHECK_URL = "https://weir/check";

function createCertOperations(
  host: Pick<SliceHost, "addresses" | "command" | "settings" | "clock" | "events">,
  { authority, probe }: CertOperationsParts,
): Handlers<typeof certOperations> {
  return {
    getCaCertificate: ({ query }) => {
      if (!host.settings.running.intercept_https) {
        throw new ApiError("NOT_FOUND", "HTTPS interception is off, so no CA certificate is in use");
      }
      const { certificatePem, certificateDer } = authority.current;
      const headers = { "Content-Disposition": 'attachment; filename="weir-ca.crt"' };
      return { status: 200, headers, body: query.format === "der" ? certificateDer : certificatePem };
    },
    getCertificateInfo: () => ({ status: 200, body: certificateInfo(authority, host.clock.now()) }),
    getMobileConfig: () => ({
      status: 200,
      headers: { "Content-Disposition": 'attachment; filename="weir.mobileconfig"' },
      body: mobileConfig(authority.current),
    }),
    renewCertificate: () => {
      renew(authority);
      host.events.changed("cert");
      return { status: 200, body: certificateInfo(authority, host.clock.now()) };
    },
    getSetup: () => {
      const data = setupData(host, authority);
      return {
        status: 200,
        body: {
          proxy_address: data.proxyAddress,
          api_address: data.apiAddress,
          magic_host: data.magicHost,
          command: host.command,
          local_only: data.isLocalOnly,
          qr_svg: data.qrSvg,
          platforms: data.platforms.map(({ steps, ...platform }) => ({ ...platform, steps: [...steps] })),
          environment: data.environment.map(({ name, value }) => ({ name, value })),
        },
      };
    },
    testInterception: async ({ signal }) => {
      const { intercept_https: isOn } = host.settings.running;
      const setting = {
        name: "HTTPS interception is on",
        ok: isOn,
        detail: isOn ? "intercept_https is true" : "intercept_https is false",
      };
      const proxyAddress = setupData(host, authority).proxyAddress;
      const steps = await probe({ proxyAddress, url: CHECK_URL, caPem: authority.current.certificatePem, signal });
      const all = [setting, ...steps];
      return { status: 200, body: { ok: all.every((step) => step.ok), steps: all.map((step) => ({ ...step })) } };
    },
  };
}

function renew(authority: AuthorityStore): void {
  try {
    authority.renew();
  } catch (cause) {
    if (cause instanceof AuthorityStoreError) throw new ApiError("CONFLICT", cause.message, { cause });
    throw new ApiError(
      "SERVICE_UNAVAILABLE",
      `The new CA cannot be saved: ${(cause as NodeJS.ErrnoException).code ?? "unknown error"}`,
      { cause },
    );
  }
}

/**
 * An Apple configuration profile with the CA certificate as a trusted root. Its identifiers derive from the
 * certificate, so that installing it again replaces the earlier profile.
 */
function mobileConfig(authority: CertificateAuthority): string {
  const name = escapeXml(authority.subject);
  const content = authority.certificateDer.toString("base64").replace(/(.{1,68})/g, "\t\t\t$1\n");
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>PayloadContent</key>
	<array>
		<dict>
			<key>PayloadCertificateFileName</key>
			<string>weir-ca.cer</string>
			<key>PayloadContent</key>
			<data>
${content}			</data>
			<key>PayloadDisplayName</key>
			<string>${name}</string>
			<key>PayloadIdentifier</key>
			<string>weir.ca.certificate</string>
			<key>PayloadType</key>
			<string>com.apple.security.root</string>
			<key>PayloadUUID</key>
			<string>${uuidOf("certificate", authority)}</string>
			<key>PayloadVersion</key>
			<integer>1</integer>
		</dict>
	</array>
	<key>PayloadDescription</key>
	<string>Lets this device trust the certificates that Weir makes, so that its HTTPS traffic can be inspected</string>
	<key>PayloadDisplayName</key>
	<string>Weir CA</string>
	<key>PayloadIdentifier</key>
	<string>weir.ca</string>
	<key>PayloadRemovalDisallowed</key>
	<false/>
	<key>PayloadType</key>
	<string>Configuration</string>
	<key>PayloadUUID</key>
	<string>${uuidOf("profile", authority)}</string>
	<key>PayloadVersion</key>
	<integer>1</integer>
</dict>
</plist>
`;
}

/** A UUID of version 8 (RFC 9562 section 5.8) over purpose and certificate. */
function uuidOf(purpose: string, authority: CertificateAuthority): string {
  const bytes = createHash("sha256").update(`weir ${purpose} ${authority.fingerprintSha256}`).digest();
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString("hex").toUpperCase();
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
