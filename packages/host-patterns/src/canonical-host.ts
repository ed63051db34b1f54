// Tested by matcher.test.ts
import { formatAddress, parseAddress } from "./address.ts";

const plainName = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;
/** What the WHATWG URL parser would read as an IPv4 address, and getaddrinfo often too: `127.1`, `0x7f000001`. */
const numericEnd = /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/;

/**
 * One spelling for each host, for comparing: lower case, no trailing dot, IDNs as A-labels, addresses in canonical
 * text without brackets or zone (also shorthand IPv4 such as `127.1`). Total: what cannot be converted comes back in
 * lower case. Takes a host without a port.
 */
export function canonicalHost(host: string): string {
  let text = host.toLowerCase();
  if (text.endsWith(".")) text = text.slice(0, -1);
  if (plainName.test(text) && !numericEnd.test(text)) return text;
  const address = parseAddress(text);
  if (address !== undefined) return formatAddress(address);
  if (/[^\x00-\x7f]/.test(text) || (plainName.test(text) && numericEnd.test(text))) return throughUrl(text) ?? text;
  return text;
}

/** The host as the URL standard's host parser writes it: A-labels, canonical IPv4. Undefined when it refuses. */
function throughUrl(text: string): string | undefined {
  if (/[\x00-\x20\x7f#%/:<>?@[\\\]^|]/.test(text)) return undefined;
  try {
    const { hostname } = new URL(`http://${text}/`);
    return hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  } catch {
    return undefined;
  }
}
