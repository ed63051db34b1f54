import { randomUUID } from "node:crypto";
import { parseCallForm, parseCallPath } from "@headworks/grpc-framing";
import { fieldValue } from "@headworks/http1";
import type { ClientFacts, ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { SliceHost } from "#slice.ts";
import { CallWatch } from "./call-watch.ts";
import type { CallFacts } from "./call-watch.ts";

/** Longer names are ignored. */
const MAX_NAME_LENGTH = 512;

export function createGrpcObserver(host: Pick<SliceHost, "streams" | "settings" | "clock" | "log">): Observer {
  const watches = new Map<ExchangeView, CallWatch>();
  const connections = new ConnectionIds();
  /** Clients with closing connections; calls already sent still begin. */
  const closing = new WeakSet<ClientFacts>();
  const onFault = (error: unknown): void => host.log.error({ err: error }, "A gRPC call could not be read on");
  return {
    name: "grpc",
    onStarted: (exchange) => {
      const { running } = host.settings;
      const form = parseCallForm(fieldValue(exchange.request.fields, "content-type"));
      if (form === undefined || !exchange.isRecorded) return;
      const options = {
        exchange,
        recorder: host.streams.open(exchange, "grpc"),
        facts: { form, attributes: attributesOf(exchange, form, connections.idFor(exchange)) },
        maxMessageBytes: running.max_body_size,
        now: () => host.clock.now(),
        onFault,
      };
      const watch = new CallWatch(options, running.capture_request_bodies);
      watches.set(exchange, watch);
      if (closing.has(exchange.client)) watch.closing();
    },
    onResponding: (exchange) => {
      if (watches.size > 0) watches.get(exchange)?.responding(host.settings.running.capture_response_bodies);
    },
    onClosing: (client, origin) => {
      if (origin === undefined) closing.add(client);
      for (const [{ client: own, request }, watch] of watches) {
        const isThere = origin === undefined || (origin.host === request.host && origin.port === request.port);
        if (own === client && isThere) watch.closing();
      }
    },
    onFinished: (exchange) => {
      if (watches.size === 0) return;
      watches.get(exchange)?.finished();
      watches.delete(exchange);
    },
  };
}

function attributesOf(
  { request }: ExchangeView,
  form: CallFacts["form"],
  connectionId: string,
): Readonly<Record<string, string>> {
  const call = parseCallPath(request.path);
  const protocol = form.protocol === "grpc" ? "grpc" : form.isText ? "grpc-web-text" : "grpc-web";
  const encoding = fieldValue(request.fields, "grpc-encoding");
  const isNamed = call !== undefined && call.service.length + call.method.length <= MAX_NAME_LENGTH;
  return {
    connection: connectionId,
    protocol,
    ...(form.format === "proto" ? {} : { format: form.format }),
    ...(isNamed ? { service: call.service, method: call.method, path: `/${call.service}/${call.method}` } : {}),
    ...(encoding === undefined ? {} : { request_encoding: encoding }),
  };
}

/** Ids of pairs of client connection and server, the same for all calls over them, dropped with the connection. */
class ConnectionIds {
  readonly #ids = new WeakMap<ClientFacts, Map<string, string>>();

  idFor({ client, request }: ExchangeView): string {
    let ids = this.#ids.get(client);
    if (ids === undefined) {
      ids = new Map();
      this.#ids.set(client, ids);
    }
    const server = `${request.host}:${request.port}`;
    const id = ids.get(server) ?? randomUUID();
    ids.set(server, id);
    return id;
  }
}
