/** Types that are neither messages nor enums. */
export const SCALARS = [
  "double",
  "float",
  "int32",
  "int64",
  "uint32",
  "uint64",
  "sint32",
  "sint64",
  "fixed32",
  "fixed64",
  "sfixed32",
  "sfixed64",
  "bool",
  "string",
  "bytes",
] as const;
export type Scalar = (typeof SCALARS)[number];

/** A declared field as plain data; its type may be unresolved. */
export interface DeclaredField {
  readonly number: number;
  readonly name: string;
  readonly jsonName: string;
  /** `named`: a message or an enum, determined by linking. */
  readonly kind: Scalar | "named" | "group";
  /** For `named` and `group`: as written; a leading dot marks a full name. */
  readonly typeName?: string;
  readonly isRepeated: boolean;
  readonly isPacked: boolean;
  readonly oneof?: string;
}

export interface DeclaredMessage {
  /** With package and enclosing messages: `shop.v1.Order.Line`. */
  readonly name: string;
  readonly fields: readonly DeclaredField[];
  /** Generated for a map field: 1 is the key, 2 the value. */
  readonly isMapEntry: boolean;
}

export interface EnumType {
  readonly name: string;
  /** In declaration order; aliases share a number. */
  readonly values: readonly (readonly [name: string, number: number])[];
}

export interface DeclaredMethod {
  readonly name: string;
  readonly input: string;
  readonly output: string;
  readonly isClientStreaming: boolean;
  readonly isServerStreaming: boolean;
}

export interface DeclaredService {
  readonly name: string;
  readonly methods: readonly DeclaredMethod[];
}

/** An extension field, possibly of a message in another file. */
export interface DeclaredExtension {
  /** Scope of name resolution: the enclosing package or message. */
  readonly scope: string;
  readonly target: string;
  readonly field: DeclaredField;
}

/** The content of a .proto file or of a file in a descriptor set. Plain data, storable as JSON. */
export interface SchemaFile {
  readonly name: string;
  readonly packageName: string;
  readonly imports: readonly string[];
  readonly messages: readonly DeclaredMessage[];
  readonly enums: readonly EnumType[];
  readonly services: readonly DeclaredService[];
  readonly extensions: readonly DeclaredExtension[];
}

/** A field with a resolved type. */
export type FieldType = {
  readonly number: number;
  readonly name: string;
  readonly jsonName: string;
  readonly isRepeated: boolean;
  readonly isPacked: boolean;
  readonly oneof: string | undefined;
} & (
  | { readonly kind: Scalar }
  | { readonly kind: "enum"; readonly type: EnumType }
  | { readonly kind: "message" | "group"; readonly type: MessageType }
);

export interface MessageType {
  readonly name: string;
  readonly isMapEntry: boolean;
  readonly fields: ReadonlyMap<number, FieldType>;
}

export interface MethodType {
  readonly name: string;
  readonly input: MessageType;
  readonly output: MessageType;
  readonly isClientStreaming: boolean;
  readonly isServerStreaming: boolean;
}

export interface ServiceType {
  readonly name: string;
  readonly methods: ReadonlyMap<string, MethodType>;
}

/** Linked types by full name. */
export interface Schema {
  readonly messages: ReadonlyMap<string, MessageType>;
  readonly enums: ReadonlyMap<string, EnumType>;
  readonly services: ReadonlyMap<string, ServiceType>;
}

/** The default JSON name: lowerCamelCase. */
export function defaultJsonName(name: string): string {
  return name.replaceAll(/_+([a-z\d]?)/gu, (_, letter: string) => letter.toUpperCase());
}
