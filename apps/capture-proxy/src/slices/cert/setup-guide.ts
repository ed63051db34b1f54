import { X509Certificate } from "node:crypto";
import { renderSVG } from "uqr";
import type { CertificateInfo } from "@headworks/capture-contract";
import { hostPortText, isLoopback } from "@headworks/host-patterns";
import type { SliceHost } from "#slice.ts";
import type { AuthorityStore } from "./authority-store.ts";

/** Steps to send one platform's traffic through the proxy and to trust its CA. */
export interface PlatformGuide {
  readonly id: string;
  readonly name: string;
  readonly steps: readonly string[];
  /** One line for the platform's shell. */
  readonly command?: string;
}

export interface GuideFacts {
  /** Path of the CA certificate's PEM file on this machine. */
  readonly caPath: string;
  /** `http://127.0.0.1:8888`, for programs on this machine. */
  readonly proxyUrl: string;
  /** Host and port for other devices. */
  readonly deviceHost: string;
  readonly devicePort: number;
}

/** Environment variables that most command-line programs read. */
function environmentGuide({ caPath, proxyUrl }: GuideFacts): { name: string; value: string }[] {
  const proxies = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map((name) => ({ name, value: proxyUrl }));
  const trust = [
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
  ];
  return [...proxies, { name: "NODE_USE_ENV_PROXY", value: "1" }, ...trust.map((name) => ({ name, value: caPath }))];
}

/** One guide per platform, with commands for this machine. */
export function platformGuides(facts: GuideFacts): PlatformGuide[] {
  return [...desktopGuides(facts), ...browserGuides(facts), ...deviceGuides(facts), ...runtimeGuides(facts)];
}

function desktopGuides({ caPath, proxyUrl }: GuideFacts): PlatformGuide[] {
  const { host, port } = splitProxy(proxyUrl);
  const path = quote(caPath);
  return [
    {
      id: "macos",
      name: "macOS",
      steps: [
        "Trust the certificate for all users with the command below, or open the file in Keychain Access and set it to Always Trust",
        `Set the proxy: System Settings, Network, your connection, Details, Proxies: web proxy and secure web proxy ${host} port ${port}`,
      ],
      command: `sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${path}`,
    },
    {
      id: "windows",
      name: "Windows",
      steps: [
        "Trust the certificate for your user with the command below",
        `Set the proxy: Settings, Network & internet, Proxy, Manual proxy setup: address ${host} port ${port}`,
      ],
      command: `certutil -addstore -user Root "${caPath}"`,
    },
    {
      id: "linux-debian",
      name: "Linux (Debian, Ubuntu)",
      steps: [
        "Trust the certificate with the command below",
        "Set the environment variables listed on this page, or the proxy of your desktop",
      ],
      command: `sudo cp ${path} /usr/local/share/ca-certificates/weir-ca.crt && sudo update-ca-certificates`,
    },
    {
      id: "linux-fedora",
      name: "Linux (Fedora, RHEL)",
      steps: [
        "Trust the certificate with the command below",
        "Set the environment variables listed on this page, or the proxy of your desktop",
      ],
      command: `sudo cp ${path} /etc/pki/ca-trust/source/anchors/weir-ca.pem && sudo update-ca-trust`,
    },
  ];
}

function browserGuides({ caPath, proxyUrl }: GuideFacts): PlatformGuide[] {
  const { host, port } = splitProxy(proxyUrl);
  return [
    {
      id: "firefox",
      name: "Firefox",
      steps: [
        "Settings, Privacy & Security, Certificates, View Certificates, Authorities, Import: choose the downloaded certificate and tick “Trust this CA to identify websites”",
        `Settings, General, Network Settings: Manual proxy configuration, HTTP proxy ${host} port ${port}, “Also use this proxy for HTTPS”`,
      ],
    },
    {
      id: "chrome",
      name: "Chrome, Chromium, Edge",
      steps: [
        "On macOS and Windows the browser trusts what the system trusts; on Linux it has a store of its own: use the command below (package libnss3-tools)",
        `Start it with --proxy-server=${proxyUrl}, or set the system's proxy`,
      ],
      command: `certutil -d "sql:$HOME/.pki/nssdb" -A -t C,, -n "Weir CA" -i ${quote(caPath)}`,
    },
  ];
}

function deviceGuides({ deviceHost, devicePort, proxyUrl, caPath }: GuideFacts): PlatformGuide[] {
  const { port } = splitProxy(proxyUrl);
  const proxy = `${deviceHost} port ${devicePort}`;
  return [
    {
      id: "ios",
      name: "iOS, iPadOS",
      steps: [
        `Settings, Wi-Fi, the network's info button, Configure Proxy, Manual: server ${proxy}`,
        "Open http://weir/ in Safari and download the profile",
        "Settings, General, VPN & Device Management: install the profile",
        "Settings, General, About, Certificate Trust Settings: switch on full trust for it",
      ],
    },
    {
      id: "android",
      name: "Android",
      steps: [
        `Settings, Network, the Wi-Fi network, Edit, Advanced, Proxy, Manual: ${proxy}`,
        "Open http://weir/ in Chrome and download the certificate",
        "Settings, Security, Encryption & credentials, Install a certificate, CA certificate: choose the downloaded file",
        "Apps trust it only if they were built to trust user certificates; browsers do",
        "For a device or emulator on a cable: the command below makes the proxy reachable and copies the certificate",
      ],
      command: `adb reverse tcp:${port} tcp:${port} && adb shell settings put global http_proxy localhost:${port} && adb push ${quote(caPath)} /sdcard/Download/weir-ca.crt`,
    },
  ];
}

function runtimeGuides({ caPath, proxyUrl }: GuideFacts): PlatformGuide[] {
  const { host, port } = splitProxy(proxyUrl);
  const path = quote(caPath);
  return [
    {
      id: "java",
      name: "Java",
      steps: [
        "Import the certificate into the trust store of the runtime with the command below",
        `Start the program with -Dhttp.proxyHost=${host} -Dhttp.proxyPort=${port} -Dhttps.proxyHost=${host} -Dhttps.proxyPort=${port}`,
      ],
      command: `keytool -importcert -noprompt -alias weir -file ${path} -cacerts -storepass changeit`,
    },
    {
      id: "node",
      name: "Node.js",
      steps: ["Start the program with these variables (NODE_USE_ENV_PROXY needs Node 22.21, 24.5 or later)"],
      command: `NODE_EXTRA_CA_CERTS=${path} NODE_USE_ENV_PROXY=1 HTTP_PROXY=${proxyUrl} HTTPS_PROXY=${proxyUrl} node app.js`,
    },
    {
      id: "python",
      name: "Python",
      steps: ["Start the program with these variables; requests, httpx, aiohttp (trust_env) and urllib read them"],
      command: `SSL_CERT_FILE=${path} REQUESTS_CA_BUNDLE=${path} HTTP_PROXY=${proxyUrl} HTTPS_PROXY=${proxyUrl} python app.py`,
    },
    {
      id: "go",
      name: "Go",
      steps: [
        "On Linux start the program with these variables; on macOS and Windows trust the certificate in the system",
      ],
      command: `SSL_CERT_FILE=${path} HTTP_PROXY=${proxyUrl} HTTPS_PROXY=${proxyUrl} go run .`,
    },
    {
      id: "curl",
      name: "curl",
      steps: ["Name proxy and certificate for one request"],
      command: `curl --proxy ${proxyUrl} --cacert ${path} https://example.com/`,
    },
    {
      id: "git",
      name: "git",
      steps: ["Name proxy and certificate for one command"],
      command: `git -c http.proxy=${proxyUrl} -c http.sslCAInfo=${path} ls-remote https://github.com/git/git.git HEAD`,
    },
  ];
}

function splitProxy(proxyUrl: string): { readonly host: string; readonly port: string } {
  const { hostname, port } = new URL(proxyUrl);
  return { host: hostname, port: port === "" ? "80" : port };
}

/** Quotes a word for a POSIX shell. */
function quote(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

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
