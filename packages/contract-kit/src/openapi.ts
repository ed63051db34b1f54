import type { TSchema } from "typebox";
import type { AnyOperations, MediaResponse, Operation } from "./operation.ts";

export interface ApiInfo {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  readonly prefix: string;
  /** The body of every non-2xx response. */
  readonly error: TSchema;
}

type Json = Record<string, unknown>;

/** The parts of a parameter schema that are used. */
interface ObjectSchema {
  readonly properties?: Readonly<Record<string, { readonly description?: string }>>;
  readonly required?: readonly string[];
}

/** The OpenAPI 3.1 document of an operations table; schemas with `$id` become components. */
export function openApiDocument(operations: AnyOperations, info: ApiInfo): Json {
  const components: Record<string, Json> = {};
  const paths: Record<string, Json> = {};
  for (const [slice, table] of Object.entries(operations)) {
    for (const [name, operation] of Object.entries(table)) {
      for (const path of [info.prefix + operation.path, ...(operation.aliases ?? [])]) {
        const item = (paths[path] ??= {});
        const suffix = path.startsWith(info.prefix + operation.path) ? "" : "AtRoot";
        item[operation.method.toLowerCase()] = operationObject(slice, name + suffix, operation, info, components);
      }
    }
  }
  return {
    openapi: "3.1.0",
    info: {
      title: info.title,
      version: info.version,
      description: info.description,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: Object.keys(operations).map((name) => ({ name })),
    paths,
    components: { schemas: components },
  };
}

function operationObject(
  slice: string,
  id: string,
  operation: Operation,
  info: ApiInfo,
  components: Record<string, Json>,
): Json {
  const parameters = [
    ...parameterObjects(operation.params, "path", components),
    ...parameterObjects(operation.query, "query", components),
    ...requestFieldObjects(operation),
  ];
  const responses: Json = {};
  for (const [status, response] of Object.entries(operation.responses)) {
    responses[status] = { ...responseObject(response, components), ...fieldObjects(response, operation) };
  }
  responses["default"] = {
    description: "A refusal or failure",
    content: { "application/json": { schema: reference(info.error, components) } },
  };
  return {
    operationId: id,
    tags: [slice],
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    "x-access": operation.access,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...bodyObject(operation, components),
    responses,
  };
}

function parameterObjects(
  schema: TSchema | undefined,
  location: "path" | "query",
  components: Record<string, Json>,
): Json[] {
  const object: ObjectSchema | undefined = schema;
  return Object.entries(object?.properties ?? {}).map(([name, property]) => ({
    name,
    in: location,
    required: object?.required?.includes(name) ?? false,
    ...(property.description === undefined ? {} : { description: property.description }),
    schema: reference(property, components),
  }));
}

function requestFieldObjects({ requestFields = {} }: Operation): Json[] {
  return Object.entries(requestFields).map(([name, description]) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  }));
}

function bodyObject(operation: Operation, components: Record<string, Json>): Json {
  if (!operation.body) return {};
  if ("upload" in operation.body) {
    const { upload, description } = operation.body as { upload: readonly string[]; description: string };
    const content = Object.fromEntries(upload.map((type) => [type, { schema: { type: "string", format: "binary" } }]));
    return { requestBody: { description, required: true, content } };
  }
  const schema = reference(operation.body, components);
  return { requestBody: { required: operation.bodyOptional !== true, content: { "application/json": { schema } } } };
}

function responseObject(response: TSchema | MediaResponse | null, components: Record<string, Json>): Json {
  if (response === null) return { description: "Done" };
  if ("media" in response) {
    const { media, description, alternatives } = response;
    const content = [media, ...alternatives].map((each) => {
      // Written by the handler itself, for its size or for numbers of 64 bits; for its reader an object as any other.
      const type = each === "application/json" ? "object" : "string";
      return [each, { schema: { type } }];
    });
    return { description, content: Object.fromEntries(content) as Json };
  }
  const description = (response as { description?: string }).description ?? "Success";
  return { description, content: { "application/json": { schema: reference(response, components) } } };
}

function fieldObjects(response: unknown, { responseFields }: Operation): Json {
  if (response === null || responseFields === undefined) return {};
  const fields = Object.entries(responseFields).map(([name, description]) => [
    name,
    { description, schema: { type: "string" } },
  ]);
  return { headers: Object.fromEntries(fields) as Json };
}

/** Moves schemas with an `$id` into the components and leaves references behind. */
function reference(schema: unknown, components: Record<string, Json>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => reference(item, components));
  if (typeof schema !== "object" || schema === null) return schema;
  const { $id, ...rest } = schema as Json & { $id?: string };
  if ($id !== undefined) {
    if (!($id in components)) {
      components[$id] = {};
      components[$id] = copy(rest, components);
    }
    return { $ref: `#/components/schemas/${$id}` };
  }
  return copy(rest, components);
}

function copy(schema: Json, components: Record<string, Json>): Json {
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      // A schema refers to itself by its `$id`, which is a component here.
      if (key === "$ref" && typeof value === "string") return [key, `#/components/schemas/${value}`];
      return [key, reference(value, components)];
    }),
  );
}
