import protobuf from "protobufjs";
import { defaultJsonName, SCALARS } from "./schema.ts";
import type {
  DeclaredExtension,
  DeclaredField,
  DeclaredMessage,
  DeclaredMethod,
  DeclaredService,
  EnumType,
  Scalar,
  SchemaFile,
} from "./schema.ts";

/** The .proto file cannot be parsed; the message contains the reason and line. */
export class ProtoTextError extends Error {
  override readonly name = "ProtoTextError";
}

// Reflection needs no generated code; disabling codegen ensures that no input can generate any.
protobuf.util.codegen = (() => {
  throw new ProtoTextError("no code is generated from schemas");
}) as unknown as typeof protobuf.util.codegen;

/**
 * Parses a .proto file (proto2, proto3, editions). Names stay as written; {@link linkSchema} resolves them. Imports are
 * not read. @throws ProtoTextError
 */
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
