export { jsonPatch, mergePatch, PatchError } from "./json-patch.ts";
