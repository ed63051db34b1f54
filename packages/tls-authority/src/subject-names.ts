import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import { AuthorityError } from "./errors.ts";

/** One subjectAltName entry: a DNS name as A-labels, or an address as its 4 or 16 octets. */
export type SubjectName = { kind: "dns"; text: string } | { kind: "ip"; text: string; octets: Uint8Array };

/** 253 characters is the longest name DNS can carry in text form (RFC 1035 section 3.1). */
const maxDnsNameLength = 253;
const dnsName = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/**
 * The names of a leaf, in order (`dns` first) without duplicates. Case, a trailing dot, and the brackets and zone of
 * an IPv6 address are normalised; IDNs become A-labels; an address among the DNS names is treated as an address.
 * Throws {@link AuthorityError} `invalid-name` for invalid names, and for none at all.
 */
export function subjectNames(names: { dns?: readonly string[]; ip?: readonly string[] }): SubjectName[] {
  const found = new Map<string, SubjectName>();
  const add = (name: SubjectName): void => {
    const key = name.kind === "dns" ? name.text : `ip ${name.octets.join(".")}`;
    if (!found.has(key)) found.set(key, name);
  };
  for (const text of names.dns ?? []) {
    add(addressName(text) ?? dnsSubjectName(text));
  }
  for (const text of names.ip ?? []) {
    const name = addressName(text);
    if (name === undefined) throw new AuthorityError("invalid-name", `${quoted(text)} is not an IP address.`);
    add(name);
  }
  if (found.size === 0) throw new AuthorityError("invalid-name", "A leaf certificate needs at least one name.");
  return [...found.values()];
}

function dnsSubjectName(text: string): SubjectName {
  let name = text.toLowerCase();
  if (name.endsWith(".")) name = name.slice(0, -1);
  if (/[^\x00-\x7f]/.test(name)) name = domainToASCII(name);
  if (!dnsName.test(name)) throw new AuthorityError("invalid-name", `${quoted(text)} is not a host name.`);
  if (name.length > maxDnsNameLength) {
    throw new AuthorityError(
      "invalid-name",
      `${quoted(text)} is ${name.length} characters long; a host name has at most ${maxDnsNameLength}.`,
    );
  }
  return { kind: "dns", text: name };
}

function addressName(text: string): SubjectName | undefined {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  const zone = bare.indexOf("%");
  const address = zone === -1 ? bare : bare.slice(0, zone);
  const version = isIP(address);
  if (version === 0 || (version === 4 && bare !== text) || (version === 4 && zone !== -1)) return undefined;
  const octets = version === 4 ? ipv4Octets(address) : ipv6Octets(address);
  return { kind: "ip", text: address.toLowerCase(), octets };
}

const ipv4Octets = (address: string): Uint8Array => Uint8Array.from(address.split(".").map(Number));

/** The 16 octets of an address accepted by `net.isIP`. */
function ipv6Octets(address: string): Uint8Array {
  const lastColon = address.lastIndexOf(":");
  const tail = address.slice(lastColon + 1);
  let text = address;
  if (tail.includes(".")) {
    const [a = 0, b = 0, c = 0, d = 0] = ipv4Octets(tail);
    text = `${address.slice(0, lastColon + 1)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  }
  const [head = "", rest] = text.split("::");
  const before = groups(head);
  const after = groups(rest ?? "");
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

const groups = (text: string): number[] => (text === "" ? [] : text.split(":").map((group) => parseInt(group, 16)));

/** A name for an error message: quoted, escaped, and truncated. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text);
}
