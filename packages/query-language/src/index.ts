export { parseBodyJson } from "./body-json.ts";
export { compileQuery, type CompileOptions, type Predicate } from "./compile.ts";
export { describeQuery } from "./describe.ts";
export { completions, type Suggestion, type ValuesSource } from "./completions.ts";
export { FIELDS, type Field, type NumberField, type NumberUnit, type TextField } from "./fields.ts";
export { foldAscii } from "./fold.ts";
export { formatQuery } from "./format.ts";
export { fromParameters, type ParameterResult, type QueryParameters } from "./from-parameters.ts";
export { compileRanges } from "./numbers.ts";
export { parseQuery, type ParseOptions, type ParseResult } from "./parse.ts";
export { indexable, needs, type Approximation, type Needs, type Plan, type PlanColumn } from "./plan.ts";
export { BUILT_IN_PRESETS, type Presets } from "./presets.ts";
export {
  allOf,
  anyOf,
  EVERYTHING,
  type FieldTest,
  type Moment,
  type NumberRange,
  type Query,
  type QueryError,
  type TextValue,
} from "./query.ts";
export type { Direction, QueryRecord, RecordState } from "./record.ts";
export { fieldValues, inBothReadings } from "./record-fields.ts";
export { asksReadable, READABLE } from "./readable-url.ts";
export { tokens, type Token, type TokenKind } from "./tokens.ts";
