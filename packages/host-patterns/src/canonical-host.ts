import { formatAddress, parseAddress } from "./address.ts";

const plainName = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;
/** Texts that the WHATWG URL parser, and often getaddrinfo, read as an IPv4 address: `127.1`, `0x7f000001`. */
const numericEnd = /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/;

/**
 * The canonical spelling of a host without port, for comparison: lower case, no trailing dot, IDNs as A-labels,
 * addresses in canonical text without brackets or zone (also shorthand IPv4 such as `127.1`). Never fails: texts that
 * cannot be converted are returned in lower case.
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

/** A host with its A-labels (RFC 5890) decoded; invalid labels stay. */
export function unicodeHost(host: string): string {
  if (!/xn--/i.test(host)) return host;
  return host
    .split(".")
    .map((label) => (/^xn--/i.test(label) ? (punycodeDecoded(label.slice(4).toLowerCase()) ?? label) : label))
    .join(".");
}

const MAX_LABEL_LENGTH = 63;

/** Bootstring with the parameters of Punycode (RFC 3492 section 6.2); undefined for invalid text. */
function punycodeDecoded(text: string): string | undefined {
  if (text === "" || text.length > MAX_LABEL_LENGTH) return undefined;
  const delimiter = text.lastIndexOf("-");
  const points = Array.from(text.slice(0, Math.max(0, delimiter)), (character) => character.charCodeAt(0));
  let point = 128;
  let index = 0;
  let bias = 72;
  for (let at = delimiter + 1; at < text.length; index += 1) {
    const before = index;
    for (let weight = 1, step = 36; ; step += 36) {
      const digit = at < text.length ? "abcdefghijklmnopqrstuvwxyz0123456789".indexOf(text.charAt(at)) : -1;
      at += 1;
      if (digit === -1) return undefined;
      index += digit * weight;
      const threshold = Math.min(26, Math.max(1, step - bias));
      if (digit < threshold) break;
      weight *= 36 - threshold;
      if (weight > 0x7fff_ffff || index > 0x7fff_ffff) return undefined;
    }
    const length = points.length + 1;
    bias = adaptedBias(index - before, length, before === 0);
    point += Math.floor(index / length);
    index %= length;
    if (point > 0x10_ffff || (point >= 0xd800 && point <= 0xdfff)) return undefined;
    points.splice(index, 0, point);
  }
  return String.fromCodePoint(...points);
}

function adaptedBias(delta: number, length: number, isFirst: boolean): number {
  let rest = Math.floor(delta / (isFirst ? 700 : 2));
  rest += Math.floor(rest / length);
  let bias = 0;
  for (; rest > 455; bias += 36) rest = Math.floor(rest / 35);
  return bias + Math.floor((36 * rest) / (rest + 38));
}

/** The host in the spelling of the URL standard's host parser: A-labels, canonical IPv4. Undefined if it fails. */
function throughUrl(text: string): string | undefined {
  if (/[\x00-\x20\x7f#%/:<>?@[\\\]^|]/.test(text)) return undefined;
  try {
    const { hostname } = new URL(`http://${text}/`);
    return hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  } catch {
    return undefined;
  }
}
