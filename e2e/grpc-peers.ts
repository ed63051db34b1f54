import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  Metadata,
  Server,
  ServerCredentials,
  loadPackageDefinition,
  type Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  type ClientWritableStream,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceClientConstructor,
  type ServiceDefinition,
  type sendUnaryData,
  type CallOptions,
  type ChannelCredentials,
  type ChannelOptions,
  type ServiceError,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

/** The messages of the shop; numbers beyond JSON's range are text. */
export interface Order {
  id?: string;
  note?: string;
  numbers?: number[];
  prices?: Record<string, number>;
  size?: string;
  raw?: Buffer;
  card?: string;
}

const SHOP_FILE = fileURLToPath(new URL("grpc-shop.proto", import.meta.url));
/** The shop's .proto file. */
export const SHOP_TEXT = readFileSync(SHOP_FILE, "utf8");
const LOADING = { longs: String, enums: String, oneofs: true } as const;
const definition = loadSync(SHOP_FILE, LOADING);
const shop = definition["shop.v1.Orders"] as ServiceDefinition;

type Callback<T> = (error: ServiceError | null, value?: T) => void;

/** The client that grpc-js generates from the file. */
export interface ShopClient extends Client {
  get(order: Order, metadata: Metadata, options: CallOptions, done: Callback<Order>): ClientUnaryCall;
  fail(order: Order, done: Callback<Order>): ClientUnaryCall;
  watch(order: Order): ClientReadableStream<Order>;
  load(done: Callback<Order>): ClientWritableStream<Order>;
  talk(): ClientDuplexStream<Order, Order>;
  wait(order: Order, options?: CallOptions): ClientReadableStream<Order>;
}

const { Orders } = (loadPackageDefinition(definition)["shop"] as { v1: { Orders: ServiceClientConstructor } }).v1;

/** A client whose calls use the current proxy in `grpc_proxy`. */
export function shopClient(target: string, credentials: ChannelCredentials, options: ChannelOptions = {}): ShopClient {
  return new Orders(target, credentials, options) as unknown as ShopClient;
}

/** `google.rpc.Status` with code 5 and an ErrorInfo. */
const DETAILS = Buffer.from(
  "CAUSBG5vcGUaMgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkVycm9ySW5mbxIGCgRHT05F",
  "base64",
);

const handlers = {
  get(call: ServerUnaryCall<Order, Order>, done: sendUnaryData<Order>): void {
    const initial = new Metadata();
    initial.set("x-initial", "one");
    call.sendMetadata(initial);
    const trailing = new Metadata();
    trailing.set("x-trailing", String(call.metadata.get("x-asked")[0] ?? ""));
    done(null, call.request, trailing);
  },
  async watch(call: ServerWritableStream<Order, Order>): Promise<void> {
    for (let number = 0; number < Number(call.request.id); number += 1) {
      if (!call.write({ id: String(number), note: `order ${number}` })) await delay(1);
    }
    call.end();
  },
  load(call: ServerReadableStream<Order, Order>, done: sendUnaryData<Order>): void {
    const numbers: number[] = [];
    call.on("data", ({ id = "0" }: Order) => numbers.push(Number(id)));
    call.on("end", () => done(null, { numbers }));
  },
  talk(call: ServerDuplexStream<Order, Order>): void {
    call.on("data", ({ note = "" }: Order) => call.write({ note: note.toUpperCase() }));
    call.on("end", () => call.end());
  },
  fail({ request }: ServerUnaryCall<Order, Order>, done: sendUnaryData<Order>): void {
    const metadata = new Metadata();
    metadata.set("grpc-status-details-bin", DETAILS);
    done({ code: Number(request.id), details: `no: ${request.note ?? ""}`, metadata });
  },
  wait(): void {
    // The client cancels.
  },
};

const REFLECTION_FILE = fileURLToPath(new URL("grpc-reflection.proto", import.meta.url));
const reflection = loadSync(REFLECTION_FILE, LOADING)["grpc.reflection.v1.ServerReflection"] as ServiceDefinition;

interface ReflectionRequest {
  readonly fileByFilename?: string;
  readonly fileContainingSymbol?: string;
  readonly listServices?: string;
}

function serverReflectionInfo(call: ServerDuplexStream<ReflectionRequest, object>): void {
  const order = definition["shop.v1.Order"] as { readonly fileDescriptorProtos: readonly Buffer[] };
  call.on("data", ({ listServices }: ReflectionRequest) => {
    const files = { fileDescriptorResponse: { fileDescriptorProto: order.fileDescriptorProtos } };
    const services = { listServicesResponse: { service: [{ name: "shop.v1.Orders" }] } };
    call.write(listServices === undefined ? files : services);
  });
  call.on("end", () => call.end());
}

/** A shop of grpc-js, with reflection. */
export interface Shop extends AsyncDisposable {
  readonly port: number;
}

export async function startShop(tls?: { readonly cert: string; readonly key: string }): Promise<Shop> {
  const server = new Server();
  server.addService(shop, handlers);
  server.addService(reflection, { serverReflectionInfo });
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [{ cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) }]);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", credentials, (error, bound) => (error === null ? resolve(bound) : reject(error)));
  });
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      server.forceShutdown();
    },
  };
}
