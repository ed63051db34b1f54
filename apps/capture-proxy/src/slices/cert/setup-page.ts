import { createHash } from "node:crypto";
import type { PlatformGuide, SetupData } from "./setup-guide.ts";

/** Download links; they differ between the proxy's own host and the API's port. */
export interface SetupLinks {
  readonly pem: string;
  readonly der: string;
  readonly mobileConfig: string;
  /** Absolute, `https://weir/check`: loads only through the proxy with a trusted CA. */
  readonly check: string;
  /** The web UI, if reachable from the page. */
  readonly ui?: string;
}

/** The set-up page: plain HTML without scripts. */
export function renderSetupPage(data: SetupData, links: SetupLinks): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Weir: set up this device</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<style>${STYLE}</style>
</head>
<body>
<main>
<p class="brand">${MARK} Weir</p>
<h1>Set up this device</h1>
<p>Three steps: trust the certificate, send traffic through the proxy, and test it. Only do this for a proxy that is yours.</p>
${downloads(data, links)}
${proxySection(data)}
${checkSection(links)}
<section aria-labelledby="platforms"><h2 id="platforms">Step by step</h2>${data.platforms.map(platform).join("")}</section>
${environment(data)}
${links.ui === undefined ? "" : `<p class="more"><a href="${escape(links.ui)}">Open the web UI</a></p>`}
</main>
</body>
</html>
`;
}

/** Content security policy of the page: its own style, its own images and the test picture. */
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
  const here = `<dt>On this machine</dt><dd><code>${escape(data.proxyAddress)}</code></dd>`;
  const downloads = data.isLocalOnly
    ? `<dl>${here}</dl><p class="warning">The proxy listens on this machine only. Start it with <code>--host 0.0.0.0</code> to let other devices in.</p>`
    : `<dl>${here}
<dt>On other devices</dt><dd><code>${escape(data.deviceHost)}</code> port <code>${data.devicePort}</code></dd></dl>
<figure><div class="qr">${data.qrSvg}</div><figcaption>Scan to open <code>${escape(data.deviceAddress)}</code> on a phone in the same network</figcaption></figure>`;
  return `<section aria-labelledby="proxy"><h2 id="proxy">2. Use the proxy</h2>
${downloads}
</section>`;
}

function checkSection(links: SetupLinks): string {
  return `<section aria-labelledby="check"><h2 id="check">3. Does it work?</h2>
<p class="check"><img src="${escape(links.check)}" width="280" height="40" alt="Test picture"></p>
<p>A green mark means that this browser uses the proxy and trusts the certificate. Without it, the browser does not use the proxy yet, or does not trust the certificate. <a href="${escape(links.check)}">Open the test alone</a> to see what the browser says; reload this page to test again.</p>
</section>`;
}

function platform({ id, name, steps, command }: PlatformGuide): string {
  const line = command === undefined ? "" : `<pre tabindex="0"><code>${escape(command)}</code></pre>`;
  return `<details id="${escape(id)}"><summary>${escape(name)}</summary><ol>${steps.map((step) => `<li>${escape(step)}</li>`).join("")}</ol>${line}</details>`;
}

function environment(data: SetupData): string {
  const lines = data.environment.map(({ name, value }) => escape(`export ${name}='${value.replace(/'/g, `'\\''`)}'`));
  return `<section aria-labelledby="environment"><h2 id="environment">Command-line programs</h2>
<p>Most of them read these variables:</p><pre tabindex="0"><code>${lines.join("\n")}</code></pre></section>`;
}

/** The picture behind `https://weir/check`; loading it proves that the certificate is trusted. */
export const CHECK_SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="280" height="40" viewBox="0 0 280 40" role="img" aria-label="It works"><rect width="280" height="40" rx="8" fill="#1a7f37"/><path d="M14 21l5 5 10-12" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/><text x="42" y="26" font-family="system-ui, sans-serif" font-size="16" fill="#fff">HTTPS goes through Weir</text></svg>\n`;
const WAVES = `<path d="M2 6h20v4H2z" fill="currentColor"/><path d="M3 13c2.2 0 2.2 1.6 4.5 1.6S9.7 13 12 13s2.2 1.6 4.5 1.6S18.8 13 21 13M3 18c2.2 0 2.2 1.6 4.5 1.6S9.7 18 12 18s2.2 1.6 4.5 1.6S18.8 18 21 18" stroke="currentColor" stroke-width="1.8" stroke-linecap="round"/>`;

/** The web UI's logo. */
const MARK = `<svg viewBox="0 0 24 24" fill="none" aria-hidden="true">${WAVES}</svg>`;

/** The icon on the proxy's own host; on the API's port the web UI serves one of the same name. */
export const ICON_SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" color="#0b7285">${WAVES}</svg>\n`;

/** Escapes text for HTML content and double-quoted attributes. */
function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.55 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; --bg: light-dark(#f6f8f9, #0f1519); --panel: light-dark(#fff, #151d22); --line: light-dark(#dfe5e8, #26323a); --ink: light-dark(#16232b, #e4ecf0); --quiet: light-dark(#4b5c66, #a6b6bf); --accent: light-dark(#0b6b7d, #3bc9db); --accent-soft: light-dark(#e2f3f6, #12343b); --accent-line: light-dark(#8cc8d3, #25616c); --warn: light-dark(#b04708, #ffa94d); --warn-soft: light-dark(#fdeee3, #38260f); }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); -webkit-text-size-adjust: 100%; }
main { max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.25; } h1 + p { margin: .4rem 0 0; color: var(--quiet); }
.brand { display: flex; align-items: center; gap: .5rem; margin: 0 0 1.25rem; font-weight: 650; } .brand svg { width: 1.5rem; height: 1.5rem; color: var(--accent); }
section { margin-top: 1rem; padding: 1rem 1.25rem 1.25rem; border: 1px solid var(--line); border-radius: 10px; background: var(--panel); }
h2 { margin: 0 0 .75rem; font-size: 1.05rem; } p { margin: .5rem 0; }
a { color: var(--accent); } a:focus-visible, summary:focus-visible, pre:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 6px; }
.buttons { list-style: none; margin: 0 0 1rem; padding: 0; display: grid; gap: .5rem; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); }
.buttons a { display: flex; flex-direction: column; justify-content: center; height: 100%; min-height: 3.5rem; padding: .6rem .9rem; border: 1px solid var(--accent-line); border-radius: 8px; background: var(--accent-soft); text-decoration: none; font-weight: 600; }
.buttons a:hover { border-color: var(--accent); } .buttons small { color: var(--quiet); font-weight: 400; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.25rem; margin: 0; } dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
code { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .9em; overflow-wrap: anywhere; }
pre { margin: .75rem 0 0; overflow-x: auto; padding: .75rem .9rem; border: 1px solid var(--line); border-radius: 8px; background: var(--bg); } pre code { overflow-wrap: normal; }
details { border-top: 1px solid var(--line); } details:last-child { margin-bottom: -.75rem; } summary { cursor: pointer; font-weight: 600; padding: .7rem 0; } details ol { margin: 0 0 .75rem; padding-left: 1.4rem; } details pre { margin-bottom: 1rem; }
figure { display: flex; align-items: center; gap: 1.25rem; margin: 1.25rem 0 0; } .qr { flex: none; padding: .5rem; border: 1px solid var(--line); border-radius: 8px; background: #fff; line-height: 0; } .qr svg { width: 9rem; height: auto; } figcaption { color: var(--quiet); }
.check img { display: block; max-width: 100%; min-height: 40px; border-radius: 8px; color: var(--quiet); }
.warning { margin: .9rem 0 0; padding: .6rem .9rem; border-radius: 8px; background: var(--warn-soft); color: var(--warn); }
.more { margin: 1.25rem 0 0; text-align: center; }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr; gap: 0; } dd + dt { margin-top: .6rem; } figure { flex-direction: column; text-align: center; } .qr svg { width: min(13rem, 60vw); } }
`;

const STYLE_HASH = `sha256-${createHash("sha256").update(STYLE).digest("base64")}`;
