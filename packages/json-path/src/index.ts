export { parseJsonPath, selectJson, type JsonStep } from "./json-path.ts";
