export { defineOperations, JsonBytes, media, upload } from "./operation.ts";
export type {
  Access,
  AnyOperations,
  Expose,
  Handlers,
  HandlerInput,
  HandlerResult,
  MediaBody,
  MediaResponse,
  Operation,
  OperationInput,
  OperationOutput,
  Operations,
  Upload,
} from "./operation.ts";
export { strictObject, nullable, oneOf, taggedBy } from "./type.ts";
export { Secret } from "./secret.ts";
export { Type } from "./type.ts";
