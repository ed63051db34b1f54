export { isSameJson, jsonPatch, mergePatch, PatchError } from "./json-patch.ts";
export { readJson, writeJson, type Json } from "./json-text.ts";
