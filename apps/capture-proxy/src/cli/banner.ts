import { DEFAULT_URL } from "./api-connection.ts";
import type { Terminal } from "./terminal.ts";
import { visibleText } from "./terminal.ts";

export interface BannerFacts {
  readonly proxy: string;
  readonly api: string;
  /** Undefined where that listener is off. */
  readonly socks?: string | undefined;
  readonly dataDir: string;
  readonly certificatePath: string;
  readonly fingerprint: string;
  readonly version: string;
  /** The command with which this was started: `weir`, or `npx weir` in a clone. */
  readonly command: string;
}

/** The output of `weir serve` once it listens: addresses, how to send traffic through the proxy, and the CA. */
export function banner(facts: BannerFacts, terminal: Terminal): string {
  const name = (text: string): string => terminal.style("dim", text.padEnd(12));
  const address = (text: string): string => terminal.style("cyan", text);
  const path = shellQuoted(facts.certificatePath);
  return [
    terminal.style("bold", `Weir ${facts.version} is running`),
    "",
    `  ${name("Proxy")}${address(facts.proxy)}`,
    ...(facts.socks === undefined ? [] : [`  ${name("SOCKS5")}${address(facts.socks)}, not intercepted: tunnels only`]),
    `  ${name("Web UI, API")}${address(facts.api)}`,
    `  ${name("Set-up page")}${address(`${facts.api}/setup`)}, or http://weir/ through the proxy`,
    `  ${name("Data")}${visibleText(facts.dataDir)}`,
    `  ${name("CA")}${visibleText(facts.certificatePath)}`,
    `  ${name("")}SHA-256 ${facts.fingerprint}`,
    "",
    "  Capture one program, with the CA trusted:",
    `    ${facts.command} run${apiOption(facts.api)} -- curl https://example.com`,
    "  Or configure a client yourself:",
    `    curl --proxy ${facts.proxy} --cacert ${path} https://example.com`,
    "",
    terminal.style("dim", "  Press Ctrl+C to stop."),
    "",
  ].join("\n");
}

/** The option with the address of this service, unless it is the default. */
function apiOption(api: string): string {
  const url = new URL(api);
  if (url.hostname === "0.0.0.0" || url.hostname === "[::]") url.hostname = new URL(DEFAULT_URL).hostname;
  return url.origin === DEFAULT_URL ? "" : ` --api-url ${url.origin}`;
}

/** The text as one word of a POSIX shell. */
export function shellQuoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
