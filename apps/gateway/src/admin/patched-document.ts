import { GatewaySettings } from "@headworks/gateway-contract";
import type { Json } from "@headworks/exact-json";
import { jsonPatch, mergePatch, PatchError } from "@headworks/json-patch";
import { parse } from "yaml";

/** Media type of a patch that is a part of the document (RFC 7396). */
export const MERGE_PATCH = "application/merge-patch+json";
/** Media type of a patch that is a list of operations (RFC 6902). */
export const JSON_PATCH = "application/json-patch+json";

/**
 * The document that a patch makes of the running one, which is in its normal form. Settings of the gateway may stand at
 * the root of a patch, as they may in a document. Throws {@link PatchError}.
 */
export function patchedDocument(running: Json, type: typeof MERGE_PATCH | typeof JSON_PATCH, text: string): Json {
  const patch = readPatch(text);
  if (type === MERGE_PATCH) {
    refuseTwice(patch);
    return withoutEmptyGateway(mergePatch(running, settingsBelowGateway(patch)));
  }
  const operations = Array.isArray(patch) ? patch.map((operation: Json) => pathsBelowGateway(operation)) : patch;
  return withoutEmptyGateway(jsonPatch(withGateway(running), operations));
}

/** The parser's own errors are replaced: they quote the text, which may hold a secret. */
function readPatch(text: string): Json {
  try {
    JSON.parse(text);
    // Read once more for integers that a number would round.
    return parse(text, { intAsBigInt: true, schema: "json", uniqueKeys: false, prettyErrors: false }) as Json;
  } catch {
    throw new PatchError("The patch is no JSON");
  }
}

/** An operation whose pointers name settings of the gateway at the root, where documents may have them. */
function pathsBelowGateway(operation: Json): Json {
  if (!isMembers(operation)) return operation;
  const moved = (pointer: Json | undefined): Json | undefined =>
    typeof pointer === "string" && isSetting(pointer.split("/")[1] ?? "") ? `/gateway${pointer}` : pointer;
  const pointers = { path: moved(operation["path"]), from: moved(operation["from"]) };
  const given = Object.entries(pointers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return { ...operation, ...(Object.fromEntries(given) as Readonly<Record<string, Json>>) };
}

/** The normal form has no section without content. */
function withGateway(running: Json): Json {
  return isMembers(running) && !Object.hasOwn(running, "gateway") ? { ...running, gateway: {} } : running;
}

/** Neither has what a patch makes of it, for which a section may have been needed. */
function withoutEmptyGateway(patched: Json): Json {
  if (!isMembers(patched)) return patched;
  const { gateway, ...rest } = patched;
  return gateway !== undefined && isMembers(gateway) && Object.keys(gateway).length === 0 ? rest : patched;
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
