export { readJson, writeJson } from "./json-text.ts";
export {
  compareNumbers,
  isNumeric,
  isSameJson,
  isShallowJson,
  numberKey,
  parseNumber,
  WrittenNumber,
  type Json,
  type Numeric,
} from "./json-value.ts";
export { parseJsonPath, selectJson, type JsonStep } from "./json-path.ts";
export { jsonPatch, mergePatch, PatchError } from "./json-patch.ts";
