import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  createServer as createPlainServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { createServer as createSecureServer, Server as SecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import Fastify from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import type { Handlers, Operation } from "@headworks/contract-kit";
import { openApiDocument } from "@headworks/contract-kit/openapi";
import { endConnection, type ParserError, respondToParserErrors } from "@headworks/contract-kit/parser-errors";
import { NO_ROUTE_COMPILERS } from "@headworks/contract-kit/server";
import { type Admin, adminApiInfo, adminOperations } from "@headworks/gateway-contract";
import { hostPortText } from "@headworks/host-patterns";
import { fieldValue, isAuthority } from "@headworks/http1";
import type { AuditLog } from "./audit-log.ts";
import {
  AdminError,
  type AnyHandler,
  bindOperation,
  type Caller,
  mayDo,
  type Operator,
  operatorOf,
} from "./bind-operation.ts";
import type { TlsMaterial } from "./tls-material.ts";

interface AdminServerParts {
  readonly bind: { readonly host: string; readonly port: number };
  /** Undefined: plain HTTP without authentication, allowed on loopback only. */
  readonly tls: TlsMaterial | undefined;
  /** The role bindings of the running generation. */
  readonly roles: () => Admin["roles"];
  readonly handlers: Handlers<Omit<typeof adminOperations, "getOpenapi">>;
  readonly audit: AuditLog;
  readonly requestIdFor: Parameters<typeof createGatedServer>[0]["requestIdFor"];
  readonly version: string;
  /** Ends streaming responses when the server stops. */
  readonly stopping: () => void;
  /** Disconnects streaming responses whose certificates may no longer be trusted. */
  readonly renewed: () => void;
  readonly log: Logger;
}

export interface AdminServer {
  readonly url: string;
  /**
   * Uses new TLS material for new connections. Existing ones close when idle, at their next request, or during a
   * streaming response, so that revoked operators are disconnected.
   */
  renew(material: TlsMaterial): void;
  stop(graceMs: number): Promise<void>;
}

const MAX_BODY_BYTES = 4 * 1024 * 1024;
const DEV_OPERATOR: Operator = { name: "loopback", role: "admin" };

/** Listens; clients without a valid certificate cannot exchange any HTTP. Rejects as `listen` does. */
export async function openAdminServer(parts: AdminServerParts): Promise<AdminServer> {
  const { tls, log, bind } = parts;
  let server: Server | undefined;
  let renewals = 0;
  const madeAfter = new WeakMap<Socket, number>();
  const app = Fastify({
    logger: false,
    schemaController: { compilersFactory: NO_ROUTE_COMPILERS },
    exposeHeadRoutes: true,
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: "idle",
    // Longer names are reported as unknown; the router would fail with its own error.
    routerOptions: { maxParamLength: MAX_TARGET_BYTES },
    genReqId: requestIdOf,
    frameworkErrors: (error, request, reply) => void sendError(reply, request, error, log),
    // Replaces Fastify's handler, which would destroy a connection before its response is sent.
    clientErrorHandler: () => undefined,
    serverFactory: (handler) => {
      server = createGatedServer({ tls, handler, requestIdFor: parts.requestIdFor });
      server.on("secureConnection", (socket: TLSSocket) => madeAfter.set(socket, renewals));
      return server;
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string", bodyLimit: MAX_BODY_BYTES }, (_request, body, done) =>
    done(null, body),
  );
  app.setErrorHandler((error, request, reply) => sendError(reply, request, error, log));
  app.setNotFoundHandler((request, reply) => sendError(reply, request, notFound(request, reply), log));
  app.addHook("onRequest", async (request, reply) => {
    // The connection was busy during the renewal.
    if (tls !== undefined && madeAfter.get(request.raw.socket) !== renewals) reply.hijack().raw.destroy();
    await Promise.resolve();
  });
  registerOperations(app, parts);
  registerDashboard(app, parts);
  await app.listen({ port: bind.port, host: bind.host });
  const { port } = app.server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? "http" : "https"}://${hostPortText(bind.host, port)}`,
    renew: (material) => {
      if (!(server instanceof SecureServer)) return;
      server.setSecureContext(material);
      renewals += 1;
      parts.renewed();
      server.closeIdleConnections();
    },
    stop: async (graceMs) => {
      parts.stopping();
      const timer = setTimeout(() => server?.closeAllConnections(), graceMs);
      await app.close();
      clearTimeout(timer);
    },
  };
}

function registerOperations(app: FastifyInstance, parts: AdminServerParts): void {
  const document = openApiDocument({ admin: adminOperations }, { ...adminApiInfo, version: parts.version });
  const handlers: Record<string, AnyHandler> = {
    ...(parts.handlers as unknown as Record<string, AnyHandler>),
    getOpenapi: () => ({ status: 200, body: document }),
  };
  for (const [name, operation] of Object.entries(adminOperations) as [string, Operation][]) {
    const handler = handlers[name];
    if (handler === undefined) throw new TypeError(`The admin API has no handler for ${name}`);
    const run = bindOperation(operation, handler);
    app.route({
      method: operation.method,
      // HEAD of an endless response would never complete.
      exposeHeadRoute: name !== "streamEvents",
      url: operation.path.replace(/\{(\w+)\}/g, ":$1"),
      handler: async (request, reply) => {
        const operatorNow = operatorSource(request, parts);
        const caller = { ...operatorNow(), requestId: request.id };
        const isReading = operation.method === "GET" || operation.access.endsWith(":read");
        const response = await audited(parts.audit, { name, isReading, caller }, async (note) => {
          if (!allows(caller, operation)) throw new AdminError("role_forbidden");
          return await run({
            params: request.params as Record<string, string>,
            search: request.raw.url?.split("?").slice(1).join("?") ?? "",
            headers: request.headers,
            body: typeof request.body === "string" ? request.body : undefined,
            caller,
            isStillAllowed: () => allows(operatorNow(), operation),
            note,
          });
        });
        return await reply
          .code(response.status)
          .headers({ ...response.headers, "cache-control": "no-store" })
          .send(response.body);
      },
    });
  }
}

/** Accessible to every role that can read. */
function registerDashboard(app: FastifyInstance, parts: AdminServerParts): void {
  const page = dashboardPage();
  app.get("/", async (request, reply) => {
    const caller = { ...operatorSource(request, parts)(), requestId: request.id };
    const html = await audited(parts.audit, { name: "getDashboard", isReading: true, caller }, async () => {
      if (caller.role === undefined) throw new AdminError("role_forbidden");
      return await Promise.resolve(page.html);
    });
    return await reply.headers({ ...page.headers, "cache-control": "no-store" }).send(html);
  });
}

/** Audits changes, failed and refused ones included, and refused reads. */
async function audited<T>(
  audit: AuditLog,
  { name, isReading, caller }: { name: string; isReading: boolean; caller: Caller },
  run: (note: (detail: string) => void) => Promise<T>,
): Promise<T> {
  let detail: string | undefined;
  const write = (outcome: string): void => {
    if (isReading && outcome !== "role_forbidden") return;
    audit.write({
      actor: caller.name,
      operation: name,
      outcome,
      request_id: caller.requestId,
      ...(detail === undefined ? {} : { detail }),
    });
  };
  try {
    const response = await run((text) => (detail = text));
    write("ok");
    return response;
  } catch (error) {
    write(error instanceof AdminError ? error.code : "internal");
    throw error;
  }
}

/** The operator of a request, by the current bindings at each call. */
function operatorSource({ raw: { socket } }: FastifyRequest, { roles }: AdminServerParts): () => Operator {
  if (!(socket instanceof TLSSocket)) return () => DEV_OPERATOR;
  const certificate = socket.getPeerCertificate();
  return () => operatorOf(certificate, roles());
}

function allows({ role }: Operator, { access }: Operation): boolean {
  return role !== undefined && mayDo(role, access);
}

/** 404, or 405 with the allowed methods (RFC 9110, 15.5.6). */
function notFound(request: FastifyRequest, reply: FastifyReply): AdminError {
  const path = request.url.split("?")[0] ?? "";
  const methods = Object.values(adminOperations)
    .filter((operation) => pathPattern(operation.path).test(path))
    .map(({ method }) => method);
  if (methods.length === 0) return new AdminError("not_found");
  void reply.header("allow", [...new Set(methods)].join(", "));
  return new AdminError("method_not_allowed");
}

function pathPattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+").replaceAll(".", "\\.")}$`);
}

async function sendError(
  reply: FastifyReply,
  request: FastifyRequest,
  error: unknown,
  log: Logger,
): Promise<FastifyReply> {
  const refusal = asAdminError(error);
  if (refusal.code === "internal") log.error({ err: error, request_id: request.id }, "An admin request failed");
  return await reply.code(refusal.status).headers(ERROR_FIELDS).send(errorBody(refusal, request.id));
}

function asAdminError(error: unknown): AdminError {
  if (error instanceof AdminError) return error;
  const { code, statusCode } = error as { code?: string; statusCode?: number };
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return new AdminError("config_too_large");
  if (statusCode === 415) return new AdminError("unsupported_media_type");
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new AdminError("bad_request", (error as Error).message);
  }
  return new AdminError("internal", undefined, { cause: error });
}

/** A self-contained page with its response headers. */
interface DashboardPage {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The dashboard. The CSP allows its style and script by hash, so names cannot inject code. */
function dashboardPage(): DashboardPage {
  const piece = (name: string): string => readFileSync(new URL(`./dashboard/${name}`, import.meta.url), "utf8");
  const style = `\n${piece("dashboard.css")}`;
  const script = `\n${piece("dashboard.js")}`;
  const html = piece("dashboard.html")
    .replace(/\s*\/\* style \*\/\s*(?=<)/, () => style)
    .replace(/\s*\/\* script \*\/\s*(?=<)/, () => script);
  return {
    html,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": [
        "default-src 'none'",
        `style-src ${hashOf(style)}`,
        `script-src ${hashOf(script)}`,
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ].join("; "),
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    },
  };
}

function hashOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

interface GatedServerParts {
  /** Undefined: plain HTTP for development, on loopback only. */
  readonly tls: TlsMaterial | undefined;
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  /** The request id: the client's if valid, otherwise a new one. */
  readonly requestIdFor: (sent: string | undefined) => string;
  /** Timeouts for the header and the whole request; default 10,000 and 60,000 ms. */
  readonly limitsMs?: { readonly head: number; readonly request: number };
}

/** Maximum total size of header names and values. */
const MAX_FIELDS_BYTES = 65_536;
const MAX_TARGET_BYTES = 16_384;
/** The parser's limit, high enough above the others that a refusal of a large header still has the client's id. */
const MAX_HEAD_BYTES = 8 * MAX_FIELDS_BYTES;
const TLS_RULES = { requestCert: true, rejectUnauthorized: true } as const;
const LOOPBACK_NAMES = new Set(["localhost", "127.0.0.1", "[::1]"]);
const HEAD_ID = /\r\nx-request-id:[ \t]*([^\r\n]*?)[ \t]*(?:\r|$)/i;
const requestIds = new WeakMap<IncomingMessage, string>();

/** The request id, which the response has in `X-Request-Id`. */
function requestIdOf(request: IncomingMessage): string {
  return requestIds.get(request) ?? "";
}

/** The body of error responses. */
function errorBody({ code, message, issues }: AdminError, requestId: string): string {
  return JSON.stringify({
    error: { code, message, request_id: requestId, ...(issues === undefined ? {} : { issues }) },
  });
}

/**
 * An HTTP server with checks that apply to all requests before routing, including parser errors, so that all errors
 * have the same form. Each response has `X-Request-Id`.
 */
export function createGatedServer({ tls, handler, requestIdFor, limitsMs }: GatedServerParts): Server {
  const options: ServerOptions = {
    maxHeaderSize: MAX_HEAD_BYTES,
    // Node's own response has no body.
    requireHostHeader: false,
    headersTimeout: limitsMs?.head ?? 10_000,
    requestTimeout: limitsMs?.request ?? 60_000,
    connectionsCheckingInterval: Math.min(limitsMs?.head ?? 10_000, 10_000) / 2,
  };
  const identify = (request: IncomingMessage): string => {
    const id = requestIdFor(fieldValue(request.rawHeaders, "x-request-id"));
    requestIds.set(request, id);
    return id;
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    response.setHeader("X-Request-Id", identify(request));
    const refusal = refusalOf(request, tls === undefined);
    if (refusal === undefined) handler(request, response);
    else respond(refusal, request, response);
  };
  const server =
    tls === undefined
      ? createPlainServer(options, listener)
      : createSecureServer({ ...options, ...tls, ...TLS_RULES }, listener);
  // By default Node drops fields after the first 1,000 silently; here their size is limited.
  server.maxHeadersCount = 0;
  server.maxConnections = 1000;
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    response.setHeader("X-Request-Id", identify(request));
    respond(refusalOf(request, tls === undefined) ?? new AdminError("expectation_failed"), request, response);
  });
  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    const refusal = refusalOf(request, tls === undefined) ?? new AdminError("method_not_allowed");
    endConnection(socket, responseText(refusal, identify(request)));
  });
  respondToParserErrors(server, ({ status, error, request }) =>
    responseText(PARSER_REFUSALS[status], request === undefined ? requestIdFor(sentId(error)) : requestIdOf(request)),
  );
  return server;
}

/** Checks independent of the operation. */
function refusalOf(request: IncomingMessage, isDevelopment: boolean): AdminError | undefined {
  const { rawHeaders, headersDistinct, httpVersion, url = "" } = request;
  if (rawHeaders.reduce((sum, text) => sum + text.length, 0) > MAX_FIELDS_BYTES) {
    return new AdminError("request_headers_too_large");
  }
  if (url.length > MAX_TARGET_BYTES) return new AdminError("uri_too_long");
  const [host, ...others] = headersDistinct["host"] ?? [];
  if (others.length > 0) return new AdminError("bad_request", "The request has more than one Host");
  // RFC 9112 section 3.2: HTTP/1.0 has no Host.
  if (host === undefined && httpVersion !== "1.0") return new AdminError("bad_request", "The request has no Host");
  if (host !== undefined && !isAuthority(host)) {
    return new AdminError("bad_request", "The Host is not a name or address with an optional port");
  }
  if (!url.startsWith("/")) return new AdminError("bad_request", "The request target must be a path");
  return isDevelopment ? foreignRequest(request, host ?? "") : undefined;
}

/** Protects against DNS rebinding to a loopback port. */
function foreignRequest({ headers }: IncomingMessage, host: string): AdminError | undefined {
  const name = host.replace(/\.?(?::\d*)?$/, "").toLowerCase();
  const site = headers["sec-fetch-site"];
  if (!LOOPBACK_NAMES.has(name)) return new AdminError("misdirected_request");
  const isForeign = headers.origin !== undefined || (site !== undefined && site !== "none" && site !== "same-origin");
  return isForeign ? new AdminError("role_forbidden", "The request comes from a web page") : undefined;
}

const PARSER_REFUSALS = {
  400: new AdminError("bad_request", "The bytes are not a valid HTTP request"),
  408: new AdminError("request_timeout"),
  431: new AdminError("request_headers_too_large"),
  505: new AdminError("version_not_supported"),
};

/** The client's id in a header that the parser rejected, if the last packet begins with that header. */
function sentId({ rawPacket, bytesParsed }: ParserError): string | undefined {
  const text = rawPacket?.toString("latin1") ?? "";
  const before = text.slice(0, bytesParsed).lastIndexOf("\r\n\r\n");
  const [head = ""] = text.slice(before === -1 ? 0 : before + 4).split("\r\n\r\n", 1);
  return HEAD_ID.exec(head)?.[1];
}

function respond(refusal: AdminError, request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(refusal.status, { ...ERROR_FIELDS, connection: "close" });
  response.end(errorBody(refusal, requestIdOf(request)));
}

/** Headers of error responses. */
const ERROR_FIELDS = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" } as const;

/** For connections without a response object: malformed requests and CONNECT. */
function responseText(refusal: AdminError, requestId: string): string {
  const body = errorBody(refusal, requestId);
  const fields = Object.entries({
    ...ERROR_FIELDS,
    "x-request-id": requestId,
    "content-length": Buffer.byteLength(body),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${fields.join("")}\r\n${body}`;
}
