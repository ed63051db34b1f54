import type { Zone } from "./import-zone.ts";
import { packageZones, testZones } from "./import-zones-packages.ts";
import { gatewayZones } from "./import-zones-sluice.ts";
import { proxyZones, uiZones } from "./import-zones-weir.ts";

/** Allowed imports by zone. A change here changes the architecture: give the reason in `decisions/`. */

/** All zones in order of matching. */
export const importZones: readonly Zone[] = [...testZones, ...packageZones, ...proxyZones, ...gatewayZones, ...uiZones];

/** Modules reserved for a few zones: replacing the module touches these zones only. */
export const reservedModules: Readonly<
  Record<string, { readonly zones: readonly string[]; readonly because: string }>
> = {
  "node:sqlite": { zones: ["proxy/storage", "gateway/storage"], because: "storage/ owns the database; ask the store" },
  fastify: { zones: ["proxy/api", "gateway/admin"], because: "only api/ and admin/ speak HTTP to people and tools" },
  pino: { zones: ["proxy/composition", "gateway/composition"], because: "everybody else receives a Logger" },
};

/** Entries that browsers load; at run time they may reach no Node built-in. */
export const browserEntries: readonly string[] = [
  "packages/capture-contract/src/index.ts",
  "packages/gateway-contract/src/index.ts",
  "packages/contract-kit/src/index.ts",
  "packages/contract-kit/src/client.ts",
  "packages/query-language/src/index.ts",
  "packages/match-condition/src/index.ts",
  "packages/entry-diff/src/index.ts",
  "packages/http-fields/src/index.ts",
  "packages/host-patterns/src/index.ts",
  "packages/json/src/index.ts",
];
