import protobuf from "protobufjs";
import {
  type DeclaredExtension,
  type DeclaredField,
  type DeclaredMessage,
  type DeclaredMethod,
  type DeclaredService,
  defaultJsonName,
  type EnumType,
  type FieldType,
  type MethodType,
  type Scalar,
  SCALARS,
  type Schema,
  type SchemaFile,
  type ServiceType,
} from "./schema.ts";

/** The .proto file cannot be parsed; the message contains the reason and line. */
export class ProtoTextError extends Error {
  override readonly name = "ProtoTextError";
}

// Reflection needs no generated code; disabling codegen ensures that no input can generate any.
protobuf.util.codegen = (() => {
  throw new ProtoTextError("no code is generated from schemas");
}) as unknown as typeof protobuf.util.codegen;

/** Parses a .proto file; {@link linkSchema} resolves its names. Throws ProtoTextError. */
export function parseProtoText(name: string, text: string): SchemaFile {
  const parsed = parse(name, text);
  const isPackedByDefault =
    !/^\s*syntax\s*=\s*["']proto2["']/mu.test(text) && /^\s*(?:syntax|edition)\s*=/mu.test(text);
  const messages: DeclaredMessage[] = [];
  const enums: EnumType[] = [];
  const services: DeclaredService[] = [];
  const extensions: DeclaredExtension[] = [];
  const into: Collected = { messages, enums, services, extensions, isPackedByDefault };
  collect(parsed.root, "", into);
  const imports = [...(parsed.imports ?? []), ...(parsed.weakImports ?? [])];
  return { name, packageName: parsed.package ?? "", imports, messages, enums, services, extensions };
}

function parse(name: string, text: string): protobuf.IParserResult {
  try {
    return protobuf.parse(text, new protobuf.Root(), { keepCase: true });
  } catch (error) {
    throw new ProtoTextError(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

interface Collected {
  readonly messages: DeclaredMessage[];
  readonly enums: EnumType[];
  readonly services: DeclaredService[];
  readonly extensions: DeclaredExtension[];
  readonly isPackedByDefault: boolean;
}

function collect(namespace: protobuf.NamespaceBase, scope: string, into: Collected): void {
  for (const object of namespace.nestedArray) {
    const name = scope === "" ? object.name : `${scope}.${object.name}`;
    if (object instanceof protobuf.Type) {
      into.messages.push(messageOf(object, name, into));
      collect(object, name, into);
    } else if (object instanceof protobuf.Enum) {
      into.enums.push({ name, values: Object.entries(object.values) });
    } else if (object instanceof protobuf.Service) {
      into.services.push({ name, methods: object.methodsArray.map(methodOf) });
    } else if (object instanceof protobuf.Field) {
      // Extension fields are shown in brackets with their full name, as in the proto3 JSON mapping.
      const field = { ...fieldOf(object, into.isPackedByDefault), name: `[${name}]`, jsonName: `[${name}]` };
      into.extensions.push({ scope, target: object.extend ?? "", field });
    } else if (object instanceof protobuf.Namespace) collect(object, name, into);
  }
}

function messageOf(type: protobuf.Type, name: string, into: Collected): DeclaredMessage {
  // The library also lists extensions of the same file here; they are collected where declared.
  const own = type.fieldsArray.filter(({ declaringField }) => declaringField === null || declaringField === undefined);
  const fields = own.map((field) => {
    if (!(field instanceof protobuf.MapField)) return fieldOf(field, into.isPackedByDefault);
    const entryName = `${name}.${field.name}#entry`;
    into.messages.push(mapEntry(entryName, field.keyType, field.type));
    return { ...facts(field), kind: "named" as const, typeName: `.${entryName}`, isRepeated: true, isPacked: false };
  });
  return { name, fields, isMapEntry: false };
}

function mapEntry(name: string, keyType: string, valueType: string): DeclaredMessage {
  const common = { isRepeated: false, isPacked: false };
  const key = { ...common, number: 1, name: "key", jsonName: "key", ...typeFacts(keyType) };
  const value = { ...common, number: 2, name: "value", jsonName: "value", ...typeFacts(valueType) };
  return { name, fields: [key, value], isMapEntry: true };
}

function facts(field: protobuf.Field): Pick<DeclaredField, "number" | "name" | "jsonName" | "oneof"> {
  const { id, name, options, partOf } = field;
  const jsonName: unknown = options?.["json_name"];
  const isPresence = options?.["proto3_optional"] === true;
  return {
    number: id,
    name,
    jsonName: typeof jsonName === "string" ? jsonName : defaultJsonName(name),
    ...(partOf === null || partOf === undefined || isPresence ? {} : { oneof: partOf.name }),
  };
}

function fieldOf(field: protobuf.Field, isPackedByDefault: boolean): DeclaredField {
  const packed: unknown = field.options?.["packed"];
  const isGroup = field.parent instanceof protobuf.Namespace && isGroupOf(field.parent, field.type);
  const isDelimited = field.options?.["features.message_encoding"] === "DELIMITED";
  return {
    ...facts(field),
    ...(isGroup || isDelimited ? { kind: "group" as const, typeName: field.type } : typeFacts(field.type)),
    isRepeated: field.repeated,
    isPacked: field.repeated && (typeof packed === "boolean" ? packed : isPackedByDefault),
  };
}

/** The library represents the body of a group as a type next to its field. */
function isGroupOf(parent: protobuf.NamespaceBase, typeName: string): boolean {
  const type = parent.nestedArray.find(({ name }) => name === typeName);
  return type instanceof protobuf.Type && (type as { readonly group?: boolean }).group === true;
}

function typeFacts(
  typeName: string,
): { readonly kind: Scalar } | { readonly kind: "named"; readonly typeName: string } {
  return isScalar(typeName) ? { kind: typeName } : { kind: "named", typeName };
}

function isScalar(name: string): name is Scalar {
  return (SCALARS as readonly string[]).includes(name);
}

function methodOf(method: protobuf.Method): DeclaredMethod {
  return {
    name: method.name,
    input: method.requestType,
    output: method.responseType,
    isClientStreaming: method.requestStream === true,
    isServerStreaming: method.responseStream === true,
  };
}

/** Resolved types, and issues of declarations that could not be resolved. */
export interface Linked {
  readonly schema: Schema;
  readonly issues: readonly string[];
}

const MAX_ISSUES = 50;

interface OpenMessage {
  readonly name: string;
  readonly isMapEntry: boolean;
  readonly fields: Map<number, FieldType>;
}

/**
 * Resolves type names across files. Unresolvable declarations are omitted and reported in `issues`, so that the rest is
 * usable; of duplicate names the first counts.
 */
function linkSchema(files: readonly SchemaFile[]): Linked {
  const linker = new Linker();
  for (const file of files) linker.declare(file);
  for (const file of files) linker.resolve(file);
  return { schema: linker, issues: linker.issues };
}

class Linker implements Schema {
  readonly messages = new Map<string, OpenMessage>();
  readonly enums = new Map<string, EnumType>();
  readonly services = new Map<string, ServiceType>();
  readonly issues: string[] = [];

  declare(file: SchemaFile): void {
    for (const { name, isMapEntry } of file.messages) {
      if (this.#isTaken(name)) this.#report(`${file.name}: ${name} is declared twice`);
      else this.messages.set(name, { name, isMapEntry, fields: new Map() });
    }
    for (const type of file.enums) {
      if (this.#isTaken(type.name)) this.#report(`${file.name}: ${type.name} is declared twice`);
      else this.enums.set(type.name, type);
    }
  }

  resolve(file: SchemaFile): void {
    for (const { name, fields } of file.messages) {
      const message = this.messages.get(name);
      // A duplicate declaration, whose fields are ignored.
      if (message === undefined || message.fields.size > 0) continue;
      for (const field of fields) this.#add(message, field, name, file.name);
    }
    for (const { scope, target, field } of file.extensions) {
      const message = this.#find(target, scope, this.messages);
      if (message !== undefined) {
        this.#add(message, field, scope, file.name);
        // Custom options of files, messages and fields are never decoded.
      } else if (!/(?:^|\.)google\.protobuf\.\w+Options$/u.test(target)) {
        this.#report(`${file.name}: ${target}, which is extended, is not declared`);
      }
    }
    for (const service of file.services) {
      const methods = new Map<string, MethodType>();
      for (const method of service.methods) {
        const input = this.#find(method.input, service.name, this.messages);
        const output = this.#find(method.output, service.name, this.messages);
        if (input !== undefined && output !== undefined) methods.set(method.name, { ...method, input, output });
        else {
          const missing = input === undefined ? method.input : method.output;
          this.#report(`${file.name}: ${missing} of ${service.name}.${method.name} is not declared`);
        }
      }
      if (!this.services.has(service.name)) this.services.set(service.name, { name: service.name, methods });
    }
  }

  #add(message: OpenMessage, declared: DeclaredField, scope: string, fileName: string): void {
    const field = this.#fieldType(declared, scope);
    const label = `${message.name}.${declared.name}`;
    if (field === undefined) this.#report(`${fileName}: ${declared.typeName ?? ""} of ${label} is not declared`);
    else if (message.fields.has(field.number)) {
      this.#report(`${fileName}: number ${field.number} of ${label} is taken`);
    } else message.fields.set(field.number, field);
  }

  #fieldType(declared: DeclaredField, scope: string): FieldType | undefined {
    const { number, name, jsonName, isRepeated, isPacked, oneof, kind, typeName = "" } = declared;
    const facts = { number, name, jsonName, isRepeated, isPacked, oneof };
    if (kind !== "named" && kind !== "group") return { ...facts, kind };
    const message = this.#find(typeName, scope, this.messages);
    if (kind === "group") return message === undefined ? undefined : { ...facts, kind, type: message };
    const type = this.#find(typeName, scope, this.enums);
    // The innermost declaration wins.
    if (message !== undefined && (type === undefined || message.name.length >= type.name.length)) {
      return { ...facts, kind: "message", type: message };
    }
    return type === undefined ? undefined : { ...facts, kind: "enum", type };
  }

  /** Names without a leading dot are resolved from the inside out. */
  #find<T>(name: string, scope: string, types: ReadonlyMap<string, T>): T | undefined {
    if (name.startsWith(".")) return types.get(name.slice(1));
    for (let at = scope; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf(".")))) {
      const found = types.get(`${at}.${name}`);
      if (found !== undefined) return found;
    }
    return types.get(name);
  }

  #isTaken(name: string): boolean {
    return this.messages.has(name) || this.enums.has(name);
  }

  #report(issue: string): void {
    if (this.issues.length < MAX_ISSUES) this.issues.push(issue);
  }
}

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
