export {
  buildSchema,
  type Linked,
  type MissingImport,
  missingImports,
  parseProtoText,
  ProtoTextError,
} from "./build-schema.ts";
export { DECODE_LIMITS, decodeMessage, type DecodedMessage, type DecodeLimits, type UnknownField } from "./decode.ts";
export { DescriptorError, readDescriptorSet, readFileDescriptor } from "./descriptor-set.ts";
export { encodeMessage, EncodeError } from "./encode.ts";
export type { EnumType, FieldType, MessageType, MethodType, Schema, SchemaFile, ServiceType } from "./schema.ts";
export { WALK_LIMITS, walkFields, type Walked, type WalkLimits, type WireField, type WireValue } from "./walk.ts";
export type { JsonValue } from "./well-known-forms.ts";
