// Tested by config.slice.test.ts
import { plannedSwitchProblem } from "@headworks/capture-contract";
import type { ConfigPatch, ProxyConfig, Settings, configOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError } from "#api/api-error.ts";
import type { SettingsStore } from "#settings/settings.ts";
import type { SliceHost } from "#slice.ts";

/** Handlers of the configuration's operations. */
export function createConfigOperations(
  host: Pick<SliceHost, "settings" | "events">,
): Handlers<typeof configOperations> {
  const { settings, events } = host;
  return {
    getConfig: () => ({ status: 200, body: showConfig(settings, { verbose: false }) }),
    updateConfig: ({ body }) => {
      const before = settings.configured;
      const problem = plannedSwitchProblem(patched(before, body));
      if (problem !== undefined) throw new ApiError("NOT_IMPLEMENTED", problem);
      settings.patch(body);
      if (settings.configured !== before) events.changed("config");
      if (settings.configured.capture_enabled !== before.capture_enabled) events.changed("capture");
      return { status: 200, body: showConfig(settings, { verbose: true }) };
    },
    describeConfig: () => ({ status: 200, body: settings.describe() }),
  };
}

/** The settings as a change would leave them, unchecked. */
function patched(before: Settings, change: ConfigPatch): Settings {
  return { ...before, ...change, upstream_proxy: { ...before.upstream_proxy, ...change.upstream_proxy } };
}

/** Settings without secrets and with what follows from them. Only the answer to a change shows `verbose`. */
function showConfig(store: SettingsStore, show: { readonly verbose: boolean }): ProxyConfig {
  const settings = store.configured;
  const { verbose, socks_auth_password: socksPassword, upstream_proxy: upstream, ...shown } = settings;
  const { auth_password: upstreamPassword, ...shownUpstream } = upstream;
  return {
    ...shown,
    ...(show.verbose ? { verbose } : {}),
    socks_auth_enabled: settings.socks_auth_username !== null && socksPassword !== null,
    access_control_enabled: settings.allowed_ips.length > 0,
    upstream_proxy: { ...shownUpstream, auth_enabled: upstream.auth_username !== null && upstreamPassword !== null },
    shown_host: store.shownHost(),
  };
}
