export {
  embeddedIpv4,
  formatAddress,
  formatPlainAddress,
  type IpAddress,
  type IpNetwork,
  isLoopback,
  isPrivate,
  isUnspecified,
  networkContains,
  parseAddress,
  parseNetwork,
} from "./address.ts";
export { canonicalHost, type HostPort, hostPortText, parseHostPort, unicodeHost } from "./host.ts";
export { compileHostPatterns, type HostMatcher, type PatternStyle, validateHostPattern } from "./matcher.ts";
