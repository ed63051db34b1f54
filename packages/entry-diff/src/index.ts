export {
  applyJsonChanges,
  compileIgnoredPaths,
  diffJson,
  type IgnoredPaths,
  type JsonChange,
  type JsonDiff,
} from "./json-diff.ts";
export { applyTextParts, diffText, type TextDiff, type TextPart } from "./text-diff.ts";
export {
  compareBodies,
  compareEntries,
  compileHeaderNames,
  type DiffSide,
  type EntryOptions,
  type HeaderMatcher,
  isBodySame,
  sideBody,
  type SideBody,
  VOLATILE_HEADERS,
} from "./entry-diff.ts";
