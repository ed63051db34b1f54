export { readJson, writeJson } from "./json-text.ts";
export { isNumeric, numberOfText, WrittenNumber, type Json, type Numeric } from "./written-number.ts";
export { compareNumbers, isSameJson, numberKey } from "./equality.ts";
