// Tested by cert.slice.test.ts
import { createHash } from "node:crypto";
import type { SetupData } from "./setup-data.ts";
import type { PlatformGuide } from "./setup-guide.ts";

/** Where the page's downloads are: they differ between the proxy's own host and the API's port. */
export interface SetupLinks {
  readonly pem: string;
  readonly der: string;
  readonly mobileConfig: string;
  /** Absolute, `https://weir/check`: loads only through the proxy, and only when the CA is trusted. */
  readonly check: string;
  /** The web UI, when it can be reached from where the page is shown. */
  readonly ui?: string;
}

/** The set-up page: plain HTML, no script, readable on a phone, in light and dark. */
export function renderSetupPage(data: SetupData, links: SetupLinks): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Weir: set up this device</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Set up this device</h1>
<p>Two steps: trust the certificate below, and send traffic through the proxy. Only do this for a proxy that is yours.</p>
${downloads(data, links)}
${proxySection(data)}
${checkSection(links)}
<section aria-labelledby="platforms"><h2 id="platforms">Step by step</h2>${data.platforms.map(platform).join("")}</section>
${environment(data)}
${links.ui === undefined ? "" : `<p><a href="${escape(links.ui)}">Open the web UI</a></p>`}
</main>
</body>
</html>
`;
}

/** The policy under which the page works: its own style, images of its own and the one test picture, nothing else. */
export function setupPagePolicy(): string {
  return [
    "default-src 'none'",
    `style-src '${STYLE_HASH}'`,
    "img-src 'self' https://weir",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function downloads({ certificate }: SetupData, links: SetupLinks): string {
  const expiry = certificate.expires_soon
    ? `<p class="warning">It expires on ${escape(certificate.not_after.slice(0, 10))}.</p>`
    : "";
  return `<section aria-labelledby="certificate"><h2 id="certificate">1. Trust the certificate</h2>
<ul class="buttons">
<li><a href="${escape(links.pem)}">macOS, Windows, Linux, Android <small>PEM</small></a></li>
<li><a href="${escape(links.mobileConfig)}">iOS, iPadOS <small>profile</small></a></li>
<li><a href="${escape(links.der)}">Other <small>DER</small></a></li>
</ul>
<dl><dt>Name</dt><dd>${escape(certificate.subject)}</dd>
<dt>SHA-256 fingerprint</dt><dd><code>${escape(certificate.fingerprint_sha256)}</code></dd>
<dt>Valid until</dt><dd>${escape(certificate.not_after.slice(0, 10))}</dd></dl>${expiry}
</section>`;
}

function proxySection(data: SetupData): string {
  const warning = data.isLocalOnly
    ? `<p class="warning">The proxy listens on this machine only. Start it with <code>--host 0.0.0.0</code> to let other devices in.</p>`
    : "";
  return `<section aria-labelledby="proxy"><h2 id="proxy">2. Use the proxy</h2>
<dl><dt>On this machine</dt><dd><code>${escape(data.proxyAddress)}</code></dd>
<dt>On other devices</dt><dd><code>${escape(data.deviceHost)}</code> port <code>${data.devicePort}</code></dd></dl>${warning}
<figure><div class="qr">${data.qrSvg}</div><figcaption>Scan to open <code>${escape(data.deviceAddress)}</code> on a phone in the same network</figcaption></figure>
</section>`;
}

function checkSection(links: SetupLinks): string {
  return `<section aria-labelledby="check"><h2 id="check">3. Does it work?</h2>
<p class="check"><img src="${escape(links.check)}" width="280" height="40" alt="Not yet: this browser does not use the proxy, or does not trust the certificate"></p>
<p>A green mark means that this browser uses the proxy and trusts the certificate. <a href="${escape(links.check)}">Open the test alone</a> to see what the browser says; reload this page to test again.</p>
</section>`;
}

function platform({ id, name, steps, command }: PlatformGuide): string {
  const line = command === undefined ? "" : `<pre><code>${escape(command)}</code></pre>`;
  return `<details id="${escape(id)}"><summary>${escape(name)}</summary><ol>${steps.map((step) => `<li>${escape(step)}</li>`).join("")}</ol>${line}</details>`;
}

function environment(data: SetupData): string {
  const lines = data.environment.map(({ name, value }) => escape(`export ${name}='${value.replace(/'/g, `'\\''`)}'`));
  return `<section aria-labelledby="environment"><h2 id="environment">Command-line programs</h2>
<p>Most of them read these variables:</p><pre><code>${lines.join("\n")}</code></pre></section>`;
}

/** The picture behind `https://weir/check`: that it arrived is the proof. */
export const CHECK_SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="280" height="40" viewBox="0 0 280 40" role="img" aria-label="It works"><rect width="280" height="40" rx="8" fill="#1a7f37"/><path d="M14 21l5 5 10-12" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/><text x="42" y="26" font-family="system-ui, sans-serif" font-size="16" fill="#fff">HTTPS goes through Weir</text></svg>\n`;

/** Text for HTML, in content and in double-quoted attributes. */
function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const STYLE = `
:root { color-scheme: light dark; font: 17px/1.5 system-ui, sans-serif; --line: color-mix(in srgb, CanvasText 20%, transparent); --accent: light-dark(#0b57d0, #8ab4f8); }
body { margin: 0; background: Canvas; color: CanvasText; }
main { max-width: 44rem; margin: 0 auto; padding: 1rem 1rem 4rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
a { color: var(--accent); }
.buttons { list-style: none; padding: 0; display: grid; gap: .5rem; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); }
.buttons a { display: block; padding: .75rem 1rem; border: 1px solid var(--line); border-radius: .6rem; text-decoration: none; font-weight: 600; }
.buttons small { font-weight: 400; opacity: .75; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; } dt { opacity: .75; } dd { margin: 0; overflow-wrap: anywhere; }
code { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: .6rem; } pre code { overflow-wrap: normal; }
details { border-top: 1px solid var(--line); padding: .5rem 0; } summary { cursor: pointer; font-weight: 600; padding: .25rem 0; }
figure { margin: 1rem 0; text-align: center; } .qr svg { width: min(13rem, 60vw); height: auto; border-radius: .6rem; } figcaption { font-size: .9rem; opacity: .85; }
.check img { max-width: 100%; border-radius: .5rem; } .warning { border-left: 4px solid light-dark(#b3261e, #f2b8b5); padding-left: .75rem; }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr; } dt { margin-top: .5rem; } }
`;

const STYLE_HASH = `sha256-${createHash("sha256").update(STYLE).digest("base64")}`;
