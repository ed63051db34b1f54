export {
  asksReadable,
  type Direction,
  fieldValues,
  foldAscii,
  inBothReadings,
  parseBodyJson,
  type QueryRecord,
  READABLE,
  type RecordState,
} from "./record.ts";
export { type CompileOptions, compileQuery, type Predicate } from "./compile.ts";
export { describeQuery, formatQuery } from "./format.ts";
export { completions, type Suggestion, type ValuesSource } from "./completions.ts";
export { FIELDS, type Field, type NumberField, type NumberUnit, type PlanColumn, type TextField } from "./fields.ts";
export { fromParameters, type ParameterResult, type QueryParameters } from "./from-parameters.ts";
export { compileRanges } from "./numbers.ts";
export { parseQuery, type ParseOptions, type ParseResult } from "./parse.ts";
export { indexable, needs, type Approximation, type Needs, type Plan } from "./plan.ts";
export {
  allOf,
  anyOf,
  BUILT_IN_PRESETS,
  EVERYTHING,
  type FieldTest,
  type Moment,
  type NumberRange,
  type Presets,
  type Query,
  type QueryError,
  type TextValue,
} from "./query.ts";
export { type Token, type TokenKind, tokens } from "./scan.ts";
