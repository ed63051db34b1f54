import type { Static, TSchema } from "typebox";

/** The access that an operation requires: `public`, or a scope `resource:permission`. */
export type Access = "public" | `${string}:${"read" | "write" | "delete" | "execute" | "export"}`;

/** The interfaces besides REST. Default: CLI, but not MCP. */
export interface Expose {
  readonly cli?: false;
  readonly mcp?: { readonly name: string; readonly readOnly: boolean };
}

/** A response that the handler writes itself: bytes, text or a stream of one media type. `application/json` takes an object. */
export interface MediaResponse {
  readonly media: string;
  readonly description: string;
  /** Media types that `Accept` may ask for instead. */
  readonly alternatives: readonly string[];
}

/** A request body that reaches the handler as a stream and is not limited by the JSON body limit. */
export interface Upload {
  readonly upload: readonly string[];
  readonly description: string;
}

/** Declares a response of the given media type, or of another one if `Accept` requests it. */
export function media(type: string, description: string, alternatives: readonly string[] = []): MediaResponse {
  return { media: type, description, alternatives };
}

/** Declares a streamed request body of one of the given media types. */
export function upload(types: readonly string[], description: string): Upload {
  return { upload: types, description };
}

export interface Operation {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path below the API prefix; parameters in braces: `/traffic/{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly access: Access;
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema | Upload;
  /** True when a request without a body is accepted too. */
  readonly bodyOptional?: boolean;
  /** Responses by status; `null` is an empty one. */
  readonly responses: { readonly [status: number]: TSchema | MediaResponse | null };
  /** Header fields that change what it does, by name: what they say. */
  readonly requestFields?: Readonly<Record<string, string>>;
  /** Descriptions of additional header fields (`X-…`) of responses with a body, by name. */
  readonly responseFields?: Readonly<Record<`X-${string}`, string>>;
  readonly expose?: Expose;
  /** Also served outside the API prefix, as the specification requires for `/health`. */
  readonly aliases?: readonly string[];
}

export type Operations = Readonly<Record<string, Operation>>;
/** All slices' operations, by slice name. */
export type AnyOperations = Readonly<Record<string, Operations>>;
type StaticOf<S> = S extends TSchema ? Static<S> : undefined;

type BodyOf<O extends Operation> = O["body"] extends Upload
  ? AsyncIterable<Uint8Array>
  : O["body"] extends TSchema
    ? O["bodyOptional"] extends true
      ? Static<O["body"]> | undefined
      : Static<O["body"]>
    : undefined;

/** The input of a handler: validated values, and facts about the connection. */
export interface HandlerInput<O extends Operation> {
  readonly params: StaticOf<O["params"]>;
  readonly query: StaticOf<O["query"]>;
  readonly body: BodyOf<O>;
  /** Request header fields by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/** The possible bodies of a {@link MediaResponse}. */
export type MediaBody = string | Uint8Array | AsyncIterable<string | Uint8Array>;
type ResponseBody<R> = R extends MediaResponse ? MediaBody : R extends TSchema ? Static<R> | JsonBytes : undefined;

/** JSON that was serialized elsewhere already (a worker), sent as it is. */
export class JsonBytes {
  readonly bytes: Uint8Array;
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** One of the declared statuses with its body. */
export type HandlerResult<O extends Operation> = {
  [S in keyof O["responses"] & number]: {
    readonly status: S;
    readonly headers?: Readonly<Record<string, string>>;
  } & (O["responses"][S] extends null
    ? { readonly body?: undefined }
    : { readonly body: ResponseBody<O["responses"][S]> });
}[keyof O["responses"] & number];

/** Exactly one handler for each operation of a table. */
export type Handlers<T extends Operations> = {
  readonly [K in keyof T]: (input: HandlerInput<T[K]>) => HandlerResult<T[K]> | Promise<HandlerResult<T[K]>>;
};

/** The input of a typed client's call. */
export type OperationInput<O extends Operation> = (O["params"] extends TSchema
  ? { readonly params: Static<O["params"]> }
  : { readonly params?: undefined }) &
  (O["query"] extends TSchema ? { readonly query?: Static<O["query"]> } : { readonly query?: undefined }) &
  (O["body"] extends Upload
    ? { readonly body: Blob | Uint8Array | string | AsyncIterable<Uint8Array> }
    : O["body"] extends TSchema
      ? O["bodyOptional"] extends true
        ? { readonly body?: Static<O["body"]> }
        : { readonly body: Static<O["body"]> }
      : { readonly body?: undefined }) & { readonly signal?: AbortSignal; readonly headers?: Record<string, string> };

type SuccessSchema<O extends Operation> = O["responses"][keyof O["responses"] & (200 | 201 | 202 | 204 | 206)];

/** The result of a typed client's successful call: parsed JSON, a `Response` for media, undefined if empty. */
export type OperationOutput<O extends Operation> =
  SuccessSchema<O> extends infer R
    ? R extends MediaResponse
      ? Response
      : R extends TSchema
        ? Static<R>
        : undefined
    : never;

/** Keeps literal types of an operations table and checks its shape. */
export function defineOperations<const T extends Operations>(table: T): T {
  return table;
}
