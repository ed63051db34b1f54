import type { ScriptHook } from "@headworks/capture-contract";
import type { GuestValue } from "@headworks/sandbox";
import { exchangeUrl, type RequestMessage } from "#exchange/exchange.ts";

/** The values that a script's filter reads. */
export interface FilteredRequest {
  readonly method: string;
  readonly url: string;
  readonly host: string;
  readonly path: string;
}

export interface CompiledScript {
  readonly id: string;
  readonly name: string;
  readonly hooks: ReadonlySet<ScriptHook>;
  readonly onError: "stop_chain" | "continue";
  /** The source names a member that needs the body, so messages wait until they have it. */
  readonly usesBody: boolean;
  matches(request: FilteredRequest): boolean;
}

/** Whether a source reads or writes bodies. */
export function namesBody(source: string): boolean {
  return /\b(?:body|bytes|json|setJson)\b/.test(source);
}

export const NOT_NAMED = "the body was not loaded, because the source does not contain the word body, bytes or json";

/** The enabled scripts in the order of execution, by hook. */
export type ScriptSet = Readonly<Record<ScriptHook, readonly CompiledScript[]>>;

export function scriptSet(scripts: readonly CompiledScript[]): ScriptSet {
  const of = (hook: ScriptHook): readonly CompiledScript[] => scripts.filter(({ hooks }) => hooks.has(hook));
  return {
    on_request: of("on_request"),
    on_response: of("on_response"),
    on_websocket_message: of("on_websocket_message"),
    on_grpc_message: of("on_grpc_message"),
    on_traffic_store: of("on_traffic_store"),
    on_session_start: of("on_session_start"),
    on_session_end: of("on_session_end"),
  };
}

/** `context.data` of one exchange, shared by its hooks: JSON text. */
export interface SharedData {
  text: string | undefined;
}

export function filteredRequest({ request }: { readonly request: Readonly<RequestMessage> }): FilteredRequest {
  return { method: request.method, url: exchangeUrl(request), host: request.host, path: request.path };
}

export function bytesOf(value: GuestValue): Buffer {
  if (value === null) return Buffer.alloc(0);
  return typeof value === "string" ? Buffer.from(value, "utf8") : Buffer.from(value);
}
