export { applyJsonChanges, diffJson, type JsonChange, type JsonDiff } from "./json-diff.ts";
export { compileIgnoredPaths, type IgnoredPaths } from "./ignored-paths.ts";
export { applyTextParts, diffText, type TextDiff, type TextPart } from "./text-diff.ts";
export { compareBodies, sideBody, type SideBody } from "./body-diff.ts";
export { compareEntries, isBodySame, type DiffSide, type EntryOptions } from "./entry-diff.ts";
export { compileHeaderNames, VOLATILE_HEADERS, type HeaderMatcher } from "./header-diff.ts";
