import { readFileSync } from "node:fs";
import { request as plainRequest, type IncomingMessage } from "node:http";
import { request as secureRequest } from "node:https";
import { text } from "node:stream/consumers";
import { type Invocation, variable } from "./invocation.ts";
import { visibleText } from "./table.ts";

export interface AdminOptions {
  readonly admin?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly ca?: string;
}

/** The gateway was unreachable or refused; the message is a sentence for the terminal. */
export class AdminCallError extends Error {}

interface AdminCall {
  readonly method?: string;
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface AdminReply {
  readonly text: string;
  readonly headers: IncomingMessage["headers"];
}

/** Client of the admin API given by options and environment. */
export class AdminClient {
  readonly #base: URL;
  readonly #identity: { readonly cert?: Buffer; readonly key?: Buffer; readonly ca?: Buffer };

  /** Throws {@link AdminCallError} for an invalid address and unreadable files. */
  constructor(options: AdminOptions, environment: Readonly<Record<string, string | undefined>>) {
    const address = options.admin ?? variable(environment, "GATEWAY_ADMIN") ?? "http://127.0.0.1:2019";
    const base = URL.parse(address);
    if (base === null || (base.protocol !== "http:" && base.protocol !== "https:")) {
      throw new AdminCallError(`${address} is not an http:// or https:// URL`);
    }
    this.#base = base;
    this.#identity = Object.fromEntries(
      (["cert", "key", "ca"] as const).flatMap((name) => {
        const path = options[name] ?? variable(environment, `GATEWAY_ADMIN_${name.toUpperCase()}`);
        return path === undefined ? [] : [[name, readPem(path)]];
      }),
    );
  }

  /** The address without credentials. */
  get shown(): string {
    return this.#base.origin;
  }

  /** Resolves with a successful response; rejects with {@link AdminCallError} otherwise. */
  async call(call: AdminCall): Promise<AdminReply> {
    const response = await this.#send(call);
    const body = await text(response).catch((error: unknown) => {
      throw new AdminCallError(`The response of ${this.shown} was interrupted`, { cause: error });
    });
    const status = response.statusCode ?? 0;
    if (status < 200 || status > 299) throw new AdminCallError(refusalText(status, body));
    return { text: body, headers: response.headers };
  }

  /** Like {@link call}, with a streaming response. */
  async stream(call: AdminCall): Promise<IncomingMessage> {
    const response = await this.#send(call);
    const status = response.statusCode ?? 0;
    if (status !== 200) throw new AdminCallError(refusalText(status, await text(response)));
    return response;
  }

  async #send({ method = "GET", path, body, headers = {} }: AdminCall): Promise<IncomingMessage> {
    const url = new URL(path, this.#base);
    const start = url.protocol === "https:" ? secureRequest : plainRequest;
    return await new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
      const refused = (error: unknown): void => {
        reject(new AdminCallError(this.#failureText(error as NodeJS.ErrnoException), { cause: error }));
      };
      try {
        const call = start(
          url,
          { method, headers: { ...length, ...headers }, agent: false, ...this.#identity },
          resolve,
        );
        call.on("error", refused);
        call.end(body);
      } catch (error) {
        refused(error);
      }
    });
  }

  #failureText({ code = "", message }: NodeJS.ErrnoException): string {
    switch (code) {
      case "ECONNREFUSED":
        return `Nothing listens at ${this.shown}. Is the gateway running with an admin section? Specify another address with GATEWAY_ADMIN or --admin`;
      case "ENOTFOUND":
      case "EAI_AGAIN":
        return `There is no host ${this.#base.hostname}`;
      case "ERR_SSL_WRONG_VERSION_NUMBER":
      case "EPROTO":
        return `${this.shown} does not speak TLS; try http://`;
      case "ECONNRESET":
      case "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED":
      case "HPE_INVALID_CONSTANT":
        return `${this.shown} closed the connection. It requires a client certificate: --cert, --key and --ca`;
      default:
        return `${this.shown} cannot be reached: ${message}${/CERT|ISSUER|SELF_SIGNED/.test(code) ? ". Specify the CA of its certificate with --ca" : ""}`;
    }
  }
}

/** Dependencies of commands for a running gateway. */
export interface Online {
  readonly client: AdminClient;
  readonly invocation: Invocation;
  readonly isJson: boolean;
}

/** Common options. */
export interface OnlineOptions extends AdminOptions {
  readonly json?: boolean;
}

/** Parses JSON with exact integers: those beyond the safe range become bigints. */
export function parseExact(source: string): unknown {
  const revive = (_: string, value: unknown, context?: { readonly source?: string }): unknown =>
    typeof value === "number" &&
    Number.isInteger(value) &&
    !Number.isSafeInteger(value) &&
    context?.source !== undefined
      ? BigInt(context.source)
      : value;
  return JSON.parse(source, revive) as unknown;
}

function refusalText(status: number, body: string): string {
  let error: { code?: string; message?: string; issues?: readonly Issue[] } = {};
  try {
    error = (JSON.parse(body) as { error?: typeof error }).error ?? {};
  } catch {
    // The response is not from a gateway.
  }
  if (error.message === undefined) return `The response has status ${status}, and is not from a Sluice admin API`;
  const lines = (error.issues ?? []).map(({ line, column, message, code }) => {
    const position = line === undefined ? "" : `${line}:${column ?? 1}: `;
    return `\n  ${position}${message} [${code}]`;
  });
  return visibleText(`${error.message} [${error.code}]${lines.join("")}`);
}

interface Issue {
  readonly code: string;
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
}

function readPem(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new AdminCallError(`The file ${path} cannot be read (${code})`, { cause: error });
  }
}
