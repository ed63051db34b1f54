import { writeFile } from "node:fs/promises";
import { pino } from "pino";
import {
  rawClient,
  readResponse,
  temporaryDirectory,
  type RawResponse,
  type TemporaryDirectory,
} from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { createGateway, type RunningGateway } from "#gateway.ts";
import type { Clock } from "#slice.ts";

/** A document as a test writes it: an object, or YAML text. */
export type TestDocument = DocumentInput | string;

/** A gateway with one or more listeners on ports of the system's choice. */
export interface TestGateway extends AsyncDisposable {
  readonly gateway: RunningGateway;
  readonly configFile: string;
  readonly directory: TemporaryDirectory;
  /** Lines of the log, parsed, oldest first. */
  readonly log: readonly Record<string, unknown>[];
  /** Port of a listener; `public` unless named. */
  port(listener?: string): number;
  /** Writes another document and reloads it. */
  reload(document: TestDocument): ReturnType<RunningGateway["reload"]>;
  /** One request on a connection of its own, by raw bytes, so that nothing is added or normalized. */
  send(request: TestRequest): Promise<RawResponse>;
}

/** A request line and fields as they are to be sent; `Host` is added unless given. */
export interface TestRequest {
  readonly method?: string;
  readonly path: string;
  readonly fields?: readonly string[];
  readonly body?: string;
  readonly listener?: string;
}

/** The listener that every document of {@link startGateway} gets unless it has listeners of its own. */
const LISTENER = { name: "public", address: "127.0.0.1", port: 0, metrics: true };

/** Starts a gateway in this process with real sockets and a file of its own. */
export async function startGateway(
  document: TestDocument,
  options: {
    readonly environment?: Readonly<Record<string, string>>;
    readonly clock?: Clock;
    /** Off unless asked for: two who notice the same change would make two candidates of it. */
    readonly followsFile?: boolean;
  } = {},
): Promise<TestGateway> {
  const directory = await temporaryDirectory();
  const configFile = directory.file("gateway.yaml");
  await writeFile(configFile, textOf(document));
  const log: Record<string, unknown>[] = [];
  const gateway = await createGateway({
    configFile,
    environment: options.environment ?? {},
    followsFile: options.followsFile ?? false,
    log: pino({ level: "debug", base: null }, { write: (line) => void log.push(JSON.parse(line) as never) }),
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  }).catch(async (error: unknown) => {
    await directory.remove();
    throw error;
  });
  const port = (listener = "public"): number => {
    const found = gateway.addresses.find(({ name }) => name === listener);
    if (found === undefined) throw new Error(`There is no listener ${listener}`);
    return found.port;
  };
  return {
    gateway,
    configFile,
    directory,
    log,
    port,
    reload: async (next) => {
      await writeFile(configFile, textOf(next));
      return await gateway.reload(false);
    },
    send: async ({ method = "GET", path, fields = [], body = "", listener }) => {
      await using client = await rawClient(port(listener));
      const lines = [`${method} ${path} HTTP/1.1`];
      if (!fields.some((field) => /^host:/i.test(field))) lines.push("Host: gateway.test");
      if (body !== "" && !fields.some((field) => /^(content-length|transfer-encoding):/i.test(field))) {
        lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
      }
      await client.write(`${[...lines, ...fields].join("\r\n")}\r\n\r\n${body}`);
      return await readResponse(client, method);
    },
    [Symbol.asyncDispose]: async () => {
      await gateway.stop(1000);
      await directory.remove();
    },
  };
}

function textOf(document: TestDocument): string {
  if (typeof document === "string") return document;
  const whole = document.listeners === undefined ? { listeners: [LISTENER], ...document } : document;
  return JSON.stringify(whole, (_key, value: unknown) => (typeof value === "bigint" ? Number(value) : value));
}

/** An upstream with one service of the same name over these ports of this machine. */
export function serving(
  name: string,
  ports: readonly number[],
  more: Partial<NonNullable<DocumentInput["upstreams"]>[number]> = {},
): Pick<Required<DocumentInput>, "upstreams" | "services"> {
  return {
    upstreams: [{ name, endpoints: ports.map((port) => ({ address: "127.0.0.1", port })), ...more }],
    services: [{ name, upstream: name }],
  };
}
