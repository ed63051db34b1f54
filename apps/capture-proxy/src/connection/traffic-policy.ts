import type { Settings } from "@headworks/capture-contract";
import { compileHostPatterns, isLoopback } from "@headworks/host-patterns";
import type { TrafficPolicy } from "./proxy-services.ts";

/** Compiles the settings that the data path reads for every exchange. */
export function compileTrafficPolicy(settings: Settings): TrafficPolicy {
  const ignored = compileHostPatterns(settings.ignored_domains, "ignored");
  const passed = compileHostPatterns(settings.passthrough_domains, "ignored");
  const allowed = compileHostPatterns(settings.allowed_ips, "ignored");
  const records = settings.capture_enabled;
  const ignoresSome = settings.ignored_domains.length > 0;
  const passesSome = settings.passthrough_domains.length > 0;
  const allowsAll = settings.allowed_ips.length === 0;
  return {
    interceptsTls: settings.intercept_https,
    offersHttp2: settings.enable_h2_downstream,
    records: (host) => records && !(ignoresSome && ignored.matches(host)),
    passesThrough: (host) => passesSome && passed.matches(host),
    allowsClient: (address) => allowsAll || isLoopback(address) || allowed.matches(address),
    maxBodyBytes: settings.max_body_size,
    capturesRequestBodies: settings.capture_request_bodies,
    capturesResponseBodies: settings.capture_response_bodies,
    idleTimeoutMs: settings.idle_timeout_ms,
    headTimeoutMs: settings.head_timeout_ms,
    headLimits: { headBytes: settings.max_header_bytes, fieldCount: settings.max_header_fields },
  };
}
