import type { ReflectGrpcSchema } from "@headworks/capture-contract";
import { frameMessage, MessageReader, readStatus } from "@headworks/grpc-framing";
import { hostPortText } from "@headworks/host-patterns";
import { GRPC_STATUS_NAMES } from "@headworks/http-fields";
import { fieldValue } from "@headworks/http1";
import { buildSchema, decodeMessage, encodeMessage, parseProtoText } from "@headworks/protobuf";
import type { JsonValue, MessageType, Schema } from "@headworks/protobuf";
import type { OutgoingRequest, SendExchange } from "#exchange/outgoing.ts";

/** Reason why reflection failed. */
export class ReflectionProblem extends Error {
  override readonly name = "ReflectionProblem";
  /** True if the given URL or fields are invalid. */
  readonly isAboutUrl: boolean;

  constructor(message: string, isAboutUrl = false) {
    super(message);
    this.isAboutUrl = isAboutUrl;
  }
}

export interface Reflected {
  /** File descriptors without duplicates. */
  readonly files: readonly Buffer[];
  /** `host:port` */
  readonly host: string;
}

const VERSIONS = ["v1", "v1alpha"] as const;
const MAX_BYTES = 33_554_432;
const MAX_MS = 15_000;
const MAX_ROUNDS = 20;
const MAX_NAMES = 2000;
const UNIMPLEMENTED = 12;
const TEXT = `syntax = "proto3";
message Request { string host = 1; oneof message_request { string file_by_filename = 3;
  string file_containing_symbol = 4; string list_services = 7; } }
message Response { Files file_descriptor_response = 4; Services list_services_response = 6; Problem error_response = 7; }
message Files { repeated bytes file_descriptor_proto = 1; }
message Services { repeated Service service = 1; }
message Service { string name = 1; }
message Problem { int32 error_code = 1; string error_message = 2; }
message FileName { string name = 1; repeated string dependency = 3; }`;

/** Content of one reflection response. */
interface ReflectionResponse {
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto?: readonly string[] };
  readonly listServicesResponse?: { readonly service?: readonly { readonly name?: string }[] };
  readonly errorResponse?: { readonly errorMessage?: string };
}

/** Fetches all files of a server (gRPC server reflection). Throws {@link ReflectionProblem}. */
export async function reflect(wanted: ReflectGrpcSchema, send: SendExchange, signal: AbortSignal): Promise<Reflected> {
  const { schema } = buildSchema([parseProtoText("reflection.proto", TEXT)]);
  const target = readTarget(wanted);
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(MAX_MS)]);
  let problem = new ReflectionProblem("The server does not offer reflection");
  for (const version of VERSIONS) {
    const call = new ReflectionCall(schema, target, version, send, bounded);
    try {
      return { files: await call.allFiles(), host: hostPortText(target.host, target.port) };
    } catch (error) {
      if (!(error instanceof ReflectionProblem)) throw error;
      problem = error;
      if (!call.isUnimplemented) break;
    }
  }
  throw problem;
}

type Target = Pick<OutgoingRequest, "scheme" | "host" | "port" | "fields">;

function readTarget({ url, metadata = {} }: ReflectGrpcSchema): Target {
  const parsed = URL.parse(url);
  if (parsed === null || (parsed.protocol !== "https:" && parsed.protocol !== "http:")) {
    throw new ReflectionProblem("must be a URL that begins with https:// or http://", true);
  }
  if (parsed.pathname !== "/" || parsed.search !== "" || parsed.username !== "" || parsed.hash !== "") {
    throw new ReflectionProblem("has more than a scheme, a host and a port", true);
  }
  const scheme = parsed.protocol === "https:" ? "https" : "http";
  const fields = ["content-type", "application/grpc", "te", "trailers"];
  for (const [name, value] of Object.entries(metadata)) {
    const isField = /^[\w!#$%&'*+.^`|~-]+$/u.test(name) && /^[\t\x20-\x7e]*$/u.test(value);
    if (!isField) throw new ReflectionProblem(`The field ${name} cannot be sent`, true);
    fields.push(name.toLowerCase(), value);
  }
  const host = parsed.hostname.replace(/^\[|\]$/gu, "");
  return { scheme, host, port: Number(parsed.port) || (scheme === "https" ? 443 : 80), fields };
}

/** Calls of one version of the service. */
class ReflectionCall {
  isUnimplemented = false;
  readonly #schema: Schema;
  readonly #target: Target;
  readonly #version: string;
  readonly #send: SendExchange;
  readonly #signal: AbortSignal;
  #leftBytes = MAX_BYTES;

  constructor(schema: Schema, target: Target, version: string, send: SendExchange, signal: AbortSignal) {
    this.#schema = schema;
    this.#target = target;
    this.#version = version;
    this.#send = send;
    this.#signal = signal;
  }

  async allFiles(): Promise<Buffer[]> {
    const [listed] = await this.#call([{ listServices: "" }]);
    const names = (listed?.listServicesResponse?.service ?? []).flatMap(({ name }) =>
      name === undefined ? [] : [name],
    );
    if (names.length === 0) throw new ReflectionProblem("The server names no services");
    const files = new Map<string, Buffer>();
    const wanted = new Set<string>();
    const take = (responses: readonly ReflectionResponse[]): void => {
      for (const { fileDescriptorResponse, errorResponse } of responses) {
        const text = errorResponse?.errorMessage ?? "";
        if (errorResponse !== undefined) throw new ReflectionProblem(`The server says: ${text}`);
        for (const base64 of fileDescriptorResponse?.fileDescriptorProto ?? []) this.#note(base64, files, wanted);
      }
    };
    take(await this.#call(names.slice(0, MAX_NAMES).map((name) => ({ fileContainingSymbol: name }))));
    // Servers may omit imported files.
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const missing = [...wanted].filter((name) => !files.has(name)).slice(0, MAX_NAMES);
      if (missing.length === 0) break;
      for (const name of missing) wanted.delete(name);
      const responses = await this.#call(missing.map((name) => ({ fileByFilename: name })));
      // Well-known files that the server lacks are built in.
      take(responses.filter(({ errorResponse }) => errorResponse === undefined));
    }
    return [...files.values()];
  }

  #note(base64: string, files: Map<string, Buffer>, wanted: Set<string>): void {
    const bytes = Buffer.from(base64, "base64");
    const { name, dependency } = this.#decode("FileName", bytes) as { name?: string; dependency?: readonly string[] };
    if (name === undefined) throw new ReflectionProblem("The server gave a file without a name");
    files.set(name, bytes);
    for (const one of dependency ?? []) wanted.add(one);
  }

  async #call(requests: readonly JsonValue[]): Promise<ReflectionResponse[]> {
    const type = this.#type("Request");
    const body = Buffer.concat(requests.map((json) => frameMessage(encodeMessage(this.#schema, type, json))));
    const responses: ReflectionResponse[] = [];
    const reader = new MessageReader({ maxKeptBytes: MAX_BYTES, allowsTrailers: false }, (message) => {
      if (!message.isCompressed) responses.push(this.#decode("Response", message.bytes) as ReflectionResponse);
    });
    const enough = new AbortController();
    const outcome = await this.#send(
      { ...this.#target, isHttp2Known: true, method: "POST", path: this.#path(), body },
      {
        signal: AbortSignal.any([this.#signal, enough.signal]),
        onBody: (piece) => {
          this.#leftBytes -= piece.length;
          if (this.#leftBytes < 0) enough.abort();
          else reader.push(Buffer.from(piece));
        },
      },
    );
    this.#check(outcome);
    if (responses.length < requests.length) throw new ReflectionProblem("The server left requests without a response");
    return responses;
  }

  #path(): string {
    return `/grpc.reflection.${this.#version}.ServerReflection/ServerReflectionInfo`;
  }

  #check(outcome: Awaited<ReturnType<SendExchange>>): void {
    if (this.#leftBytes < 0) throw new ReflectionProblem("The server sends more than the limit");
    if (this.#signal.aborted) throw new ReflectionProblem("The server did not respond in time");
    if (outcome.kind === "failed") throw new ReflectionProblem(outcome.failure.message);
    const { response } = outcome.exchange;
    const status = readStatus(response.trailers ?? []) ?? readStatus(response.fields);
    if (status === undefined) {
      const type = fieldValue(response.fields, "content-type") ?? "nothing";
      throw new ReflectionProblem(`The server answered ${response.status} with ${type}: no gRPC`);
    }
    if (status.code === 0) return;
    this.isUnimplemented = status.code === UNIMPLEMENTED;
    const name = GRPC_STATUS_NAMES[status.code ?? -1] ?? "a status that is no number";
    throw new ReflectionProblem(`The server answered ${name}${status.message === "" ? "" : `: ${status.message}`}`);
  }

  #decode(name: string, bytes: Buffer): JsonValue {
    return decodeMessage(this.#schema, this.#type(name), bytes).json;
  }

  #type(name: string): MessageType {
    const type = this.#schema.messages.get(name);
    if (type === undefined) throw new TypeError(`There is no ${name}`);
    return type;
  }
}
