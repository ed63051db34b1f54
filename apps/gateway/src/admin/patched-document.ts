// Tested by ../../test/admin-patches.test.ts
import { GatewaySettings } from "@headworks/gateway-contract";
import { jsonPatch, mergePatch, PatchError, type Json } from "@headworks/json-patch";
import { parse } from "yaml";

/** Media type of a patch that is a part of the document (RFC 7396). */
export const MERGE_PATCH = "application/merge-patch+json";
/** Media type of a patch that is a list of operations (RFC 6902). */
export const JSON_PATCH = "application/json-patch+json";

/**
 * The document that a patch makes of the running one, which is in its normal form. Settings of the gateway may stand at
 * the root of a patch, as they may in a document. Throws {@link PatchError} or `SyntaxError`.
 */
export function patchedDocument(running: Json, type: typeof MERGE_PATCH | typeof JSON_PATCH, text: string): Json {
  JSON.parse(text);
  // Read once more for integers that a number would round.
  const patch = parse(text, { intAsBigInt: true, schema: "json" }) as Json;
  if (type === JSON_PATCH) return settingsBelowGateway(jsonPatch(running, patch));
  refuseTwice(patch);
  return mergePatch(running, settingsBelowGateway(patch));
}

const isSetting = (name: string): boolean => Object.hasOwn(GatewaySettings.properties, name);

/** The same with what stands at the root below `gateway`, in place of what is there. */
function settingsBelowGateway(value: Json): Json {
  if (!isMembers(value)) return value;
  const members = Object.entries(value);
  const settings = members.filter(([name]) => isSetting(name));
  if (settings.length === 0) return value;
  const { gateway = {} } = value;
  if (!isMembers(gateway)) throw new PatchError('"gateway" is no object, and settings of it stand at the root');
  return {
    ...Object.fromEntries(members.filter(([name]) => !isSetting(name))),
    gateway: { ...gateway, ...Object.fromEntries(settings) },
  };
}

function refuseTwice(patch: Json): void {
  if (!isMembers(patch) || !isMembers(patch["gateway"] ?? null)) return;
  const gateway = patch["gateway"] as Readonly<Record<string, Json>>;
  const twice = Object.keys(patch).find((name) => isSetting(name) && Object.hasOwn(gateway, name));
  if (twice !== undefined) throw new PatchError(`"${twice}" is set at the root and under "gateway"; keep one of them`);
}

function isMembers(value: Json): value is { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
