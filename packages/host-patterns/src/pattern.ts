import { parseNetwork, type IpNetwork } from "./address.ts";
import { canonicalHost } from "./canonical-host.ts";
import { maxHostNameLength } from "./host-port.ts";

/** A parsed host pattern. `name`s are canonical hosts. */
export type HostPattern =
  | { kind: "name"; name: string }
  /** `.domain`, the older spelling of "the domain and everything below". */
  | { kind: "suffix"; name: string }
  /** `*.domain` */
  | { kind: "subdomains"; name: string }
  | { kind: "network"; network: IpNetwork }
  /** The literal texts around the stars, at least two; anchored at both ends. */
  | { kind: "glob"; literals: readonly string[] };

/** Parses one pattern; returns a sentence as `issue` for an invalid one. Never throws. */
export function parseHostPattern(text: string): HostPattern | { issue: string } {
  const trimmed = text.trim();
  if (trimmed === "") return { issue: "The host pattern is empty." };
  if (trimmed.includes("://")) return { issue: "Give a host without a scheme, such as example.com." };
  if (trimmed.includes("@")) return { issue: "Give a host without user information." };
  if (trimmed.includes("/")) return networkPattern(trimmed);
  const bare = trimmed.startsWith("[") && trimmed.endsWith("]") ? trimmed.slice(1, -1) : trimmed;
  const network = parseNetwork(bare);
  if (network !== undefined) return { kind: "network", network };
  if (bare.includes(":")) return { issue: "Give a host without a port; IPv6 addresses must be complete." };
  if (bare.startsWith(".")) return namePattern("suffix", bare.slice(1));
  if (!bare.includes("*")) return namePattern("name", bare);
  if (bare.startsWith("*.") && !bare.includes("*", 1)) return namePattern("subdomains", bare.slice(2));
  return globPattern(bare);
}

/** The problem of a pattern as a sentence; undefined for a valid one. */
export function validateHostPattern(text: string): string | undefined {
  const pattern = parseHostPattern(text);
  return "issue" in pattern ? pattern.issue : undefined;
}

function networkPattern(text: string): HostPattern | { issue: string } {
  const network = parseNetwork(text);
  if (network !== undefined) return { kind: "network", network };
  const looksNumeric = /^[0-9a-f:.[\]]+\/[0-9]*$/i.test(text);
  return looksNumeric
    ? { issue: "The network is not in CIDR form, such as 10.0.0.0/8 or fd00::/8." }
    : { issue: "Give a host without a path." };
}

function namePattern(kind: "name" | "suffix" | "subdomains", text: string): HostPattern | { issue: string } {
  const name = canonicalHost(text);
  const network = kind === "name" ? parseNetwork(name) : undefined;
  if (network !== undefined) return { kind: "network", network };
  const issue = nameIssue(name, /[^a-z0-9._-]/);
  return issue === undefined ? { kind, name } : { issue };
}

function globPattern(text: string): HostPattern | { issue: string } {
  const labels: string[] = [];
  for (const label of text.toLowerCase().split(".")) {
    const isAscii = !/[^\x00-\x7f]/.test(label);
    if (!isAscii && label.includes("*")) {
      return { issue: "A star and letters outside ASCII cannot be in the same part of a name." };
    }
    labels.push(isAscii ? label : canonicalHost(label));
  }
  if (labels.length > 1 && labels.at(-1) === "") labels.pop();
  const glob = labels.join(".");
  const issue = nameIssue(glob, /[^a-z0-9._*-]/);
  return issue === undefined ? { kind: "glob", literals: glob.split(/\*+/) } : { issue };
}

function nameIssue(name: string, forbidden: RegExp): string | undefined {
  if (name === "") return "A domain name must follow the dot.";
  const character = forbidden.exec(name)?.[0];
  if (character !== undefined) return `A host pattern cannot have the character ${JSON.stringify(character)}.`;
  if (name.startsWith(".") || name.includes("..")) return "A part of the name between two dots is empty.";
  if (name.length > maxHostNameLength) return `A host name has at most ${maxHostNameLength} characters.`;
  const isTooLong = (label: string): boolean => label.length > 63 && !label.includes("*");
  if (name.split(".").some(isTooLong)) return "A part of the name is longer than 63 characters.";
  return undefined;
}
