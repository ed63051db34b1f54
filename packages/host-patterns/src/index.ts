export {
  formatAddress,
  formatPlainAddress,
  isLoopback,
  isPrivate,
  isUnspecified,
  networkContains,
  parseAddress,
  parseNetwork,
  type IpAddress,
  type IpNetwork,
} from "./address.ts";
export { canonicalHost, unicodeHost } from "./canonical-host.ts";
export { embeddedIpv4 } from "./embedded-ipv4.ts";
export { hostPortText, parseHostPort, type HostPort } from "./host-port.ts";
export { compileHostPatterns, type HostMatcher, type PatternStyle } from "./matcher.ts";
export { validateHostPattern } from "./pattern.ts";
