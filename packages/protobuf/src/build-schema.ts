import { type Linked, linkSchema } from "./link.ts";
import { parseProtoText } from "./proto-text.ts";
import type { SchemaFile } from "./schema.ts";

/** Built-in files that every schema may import. */
const TEXTS: Readonly<Record<string, string>> = {
  "google/protobuf/any.proto": `syntax = "proto3"; package google.protobuf;
    message Any { string type_url = 1; bytes value = 2; }`,
  "google/protobuf/duration.proto": `syntax = "proto3"; package google.protobuf;
    message Duration { int64 seconds = 1; int32 nanos = 2; }`,
  "google/protobuf/empty.proto": `syntax = "proto3"; package google.protobuf; message Empty {}`,
  "google/protobuf/field_mask.proto": `syntax = "proto3"; package google.protobuf;
    message FieldMask { repeated string paths = 1; }`,
  "google/protobuf/struct.proto": `syntax = "proto3"; package google.protobuf;
    message Struct { map<string, Value> fields = 1; }
    message Value { oneof kind { NullValue null_value = 1; double number_value = 2; string string_value = 3;
      bool bool_value = 4; Struct struct_value = 5; ListValue list_value = 6; } }
    enum NullValue { NULL_VALUE = 0; }
    message ListValue { repeated Value values = 1; }`,
  "google/protobuf/timestamp.proto": `syntax = "proto3"; package google.protobuf;
    message Timestamp { int64 seconds = 1; int32 nanos = 2; }`,
  "google/protobuf/wrappers.proto": `syntax = "proto3"; package google.protobuf;
    message DoubleValue { double value = 1; } message FloatValue { float value = 1; }
    message Int64Value { int64 value = 1; } message UInt64Value { uint64 value = 1; }
    message Int32Value { int32 value = 1; } message UInt32Value { uint32 value = 1; }
    message BoolValue { bool value = 1; } message StringValue { string value = 1; }
    message BytesValue { bytes value = 1; }`,
  "google/rpc/status.proto": `syntax = "proto3"; package google.rpc;
    message Status { int32 code = 1; string message = 2; repeated google.protobuf.Any details = 3; }`,
  "google/rpc/error_details.proto": `syntax = "proto3"; package google.rpc;
    message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
    message RetryInfo { google.protobuf.Duration retry_delay = 1; }
    message DebugInfo { repeated string stack_entries = 1; string detail = 2; }
    message QuotaFailure { message Violation { string subject = 1; string description = 2; }
      repeated Violation violations = 1; }
    message PreconditionFailure { message Violation { string type = 1; string subject = 2; string description = 3; }
      repeated Violation violations = 1; }
    message BadRequest { message FieldViolation { string field = 1; string description = 2; string reason = 3;
      LocalizedMessage localized_message = 4; } repeated FieldViolation field_violations = 1; }
    message RequestInfo { string request_id = 1; string serving_data = 2; }
    message ResourceInfo { string resource_type = 1; string resource_name = 2; string owner = 3; string description = 4; }
    message Help { message Link { string description = 1; string url = 2; } repeated Link links = 1; }
    message LocalizedMessage { string locale = 1; string message = 2; }`,
  "google/rpc/code.proto": `syntax = "proto3"; package google.rpc;
    enum Code { OK = 0; CANCELLED = 1; UNKNOWN = 2; INVALID_ARGUMENT = 3; DEADLINE_EXCEEDED = 4; NOT_FOUND = 5;
      ALREADY_EXISTS = 6; PERMISSION_DENIED = 7; UNAUTHENTICATED = 16; RESOURCE_EXHAUSTED = 8; FAILED_PRECONDITION = 9;
      ABORTED = 10; OUT_OF_RANGE = 11; UNIMPLEMENTED = 12; INTERNAL = 13; UNAVAILABLE = 14; DATA_LOSS = 15; }`,
};

/** Imports that only define options of files, services and methods, which never occur in messages. */
const OPTIONS_ONLY =
  /^(?:google\/protobuf\/(?:descriptor|(?:cpp|java|go)_features|json_enumvalue_options|compiler\/plugin)|google\/api\/(?:annotations|http|client|field_behavior|resource|launch_stage|visibility|routing|field_info)|gogoproto\/gogo|validate\/validate|buf\/validate\/validate|protoc-gen-openapiv2\/options\/annotations)\.proto$/u;

let parsed: readonly SchemaFile[] | undefined;

/** Builds a schema from files and the well-known types, which files may override. */
export function buildSchema(files: readonly SchemaFile[]): Linked {
  const own = new Set(files.map(({ name }) => name));
  const ownNames = new Set(files.flatMap(({ messages, enums }) => [...messages, ...enums].map(({ name }) => name)));
  const known = wellKnownFiles().filter(
    ({ name, messages, enums }) => !own.has(name) && ![...messages, ...enums].some((type) => ownNames.has(type.name)),
  );
  return linkSchema([...files, ...known]);
}

/** An unresolved import. */
export interface MissingImport {
  readonly file: string;
  readonly missing: string;
}

/**
 * Unresolved imports, well-known ones excluded. A file matches an import if its name equals the import, or one is a
 * suffix of the other at a slash, since paths often differ from those in imports.
 */
export function missingImports(files: readonly SchemaFile[]): MissingImport[] {
  return files.flatMap(({ name: file, imports }) =>
    imports
      .filter((wanted) => !isKnownImport(wanted) && !files.some(({ name }) => hasName(name, wanted)))
      .map((missing) => ({ file, missing })),
  );
}

function hasName(name: string, wanted: string): boolean {
  return name === wanted || name.endsWith(`/${wanted}`) || wanted.endsWith(`/${name}`);
}

/** True for built-in and options-only imports. */
function isKnownImport(name: string): boolean {
  return Object.hasOwn(TEXTS, name) || OPTIONS_ONLY.test(name);
}

/** The well-known types and Google's error details, parsed on first use. */
function wellKnownFiles(): readonly SchemaFile[] {
  parsed ??= Object.entries(TEXTS).map(([name, text]) => parseProtoText(name, text));
  return parsed;
}
