import type { ProxyConfig, configOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { readImport } from "#portable/import-body.ts";
import type { RuleBundles } from "#portable/rule-bundles.ts";
import type { SettingsStore } from "#settings/settings.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { announce, configDocument, importConfigDocument } from "./config-document.ts";

/** Settings over the API, alone and together with all rules. */
export function createConfigSlice(host: SliceHost, bundles: RuleBundles): Slice<typeof configOperations> {
  return { name: "config", operations: createConfigOperations(host, bundles) };
}

function createConfigOperations(
  host: Pick<SliceHost, "settings" | "events" | "clock">,
  bundles: RuleBundles,
): Handlers<typeof configOperations> {
  const { settings, events } = host;
  return {
    getConfig: () => ({ status: 200, body: showConfig(settings, { verbose: false }) }),
    updateConfig: ({ body }) => {
      const before = settings.configured;
      settings.patch(body);
      announce(events, before, settings.configured);
      return { status: 200, body: showConfig(settings, { verbose: true }) };
    },
    describeConfig: () => ({ status: 200, body: settings.describe() }),
    exportConfig: () => ({ status: 200, body: configDocument(host, bundles) }),
    importConfig: async ({ query, body }) => {
      const given = await readImport(body, query, ["config", "config_json"]);
      return { status: 200, body: importConfigDocument(host, bundles, given) };
    },
  };
}

/** Settings without secrets plus derived values. Only the response to a change includes `verbose`. */
function showConfig(store: SettingsStore, show: { readonly verbose: boolean }): ProxyConfig {
  const settings = store.configured;
  const { verbose, socks_auth_password: _socksPassword, upstream_proxy: upstream, ...shown } = settings;
  const { auth_password: _upstreamPassword, ...shownUpstream } = upstream;
  return {
    ...shown,
    ...(show.verbose ? { verbose } : {}),
    socks_auth_enabled: settings.socks_auth_username !== null,
    access_control_enabled: settings.allowed_ips.length > 0,
    upstream_proxy: { ...shownUpstream, auth_enabled: upstream.auth_username !== null },
    shown_host: store.shownHost(),
  };
}
