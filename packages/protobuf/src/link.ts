import type { DeclaredField, EnumType, FieldType, MethodType, Schema, SchemaFile, ServiceType } from "./schema.ts";

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
export function linkSchema(files: readonly SchemaFile[]): Linked {
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
