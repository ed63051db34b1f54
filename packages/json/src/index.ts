export {
  compareNumbers,
  isNumeric,
  isSameJson,
  isShallowJson,
  type Json,
  numberKey,
  type Numeric,
  parseNumber,
  readJson,
  writeJson,
  WrittenNumber,
} from "./json-text.ts";
export { parseJsonPath, selectJson, type JsonStep } from "./json-path.ts";
export { jsonPatch, mergePatch, PatchError } from "./json-patch.ts";
