import { existsSync } from "node:fs";
import type { Server } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import fastifyStatic from "@fastify/static";
import Fastify from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { apiInfo, operations as weirOperations } from "@headworks/capture-contract";
import type { AnyOperations } from "@headworks/contract-kit";
import { openApiDocument } from "@headworks/contract-kit/openapi";
import { NO_ROUTE_COMPILERS } from "@headworks/contract-kit/server";
import { hostPortText } from "@headworks/host-patterns";
import type { SettingsStore } from "#settings/settings.ts";
import { ApiError } from "./api-error.ts";
import { compileGate, type Gate, type Identify, isApiPath, LOCAL_ADMIN, pathOf } from "./gate.ts";
import { type AnyHandler, bindOperation, type BoundResponse } from "./bind.ts";
import { renderApiDocs } from "./docs-page.ts";
import type { EventHub } from "./events.ts";
import { beforeRest, bodyOf, createGatedServer, MAX_TARGET_BYTES } from "./gated-server.ts";
import { announcesBody } from "./read-body.ts";
import { errorResponse, type ErrorResponse, refusalResponse } from "./respond-error.ts";

const DOCUMENT: UiResponse = { kind: "file", path: "index.html", cacheControl: "no-cache" };

/** Shown if the UI was not built; the API works without it. */
const MISSING_BUILD_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Weir</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 40rem; margin: 10vh auto; padding: 0 1rem; }
code { background: color-mix(in srgb, currentColor 12%, transparent); padding: .1em .35em; border-radius: .25em; }
</style>
</head>
<body>
<h1>Weir is running, but its web UI is not built</h1>
<p>Build it once in the folder of the project, then reload this page:</p>
<p><code>npm run build</code></p>
<p>Everything else works: <a href="/api/docs">the API</a>, <a href="/setup">certificate and device set-up</a>.</p>
</body>
</html>
`;

/** The part of a logger that the API uses. */
interface ApiLog {
  debug(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** A slice's name in the contract and one handler per operation. */
export interface BoundSlice {
  readonly name: string;
  readonly operations: object;
  /** The disabled feature this slice belongs to; no handlers are needed then. */
  readonly switchedOffBy?: string;
}

/** A document outside the contract, such as `/setup`. */
export interface ApiPage {
  readonly path: string;
  readonly render: () => { readonly html: string; readonly contentSecurityPolicy?: string };
}

export interface ApiServerOptions {
  readonly slices: readonly BoundSlice[];
  readonly settings: Pick<SettingsStore, "running" | "onChange">;
  readonly events: EventHub;
  readonly log: ApiLog;
  /** Directory of the built UI; it may be missing. */
  readonly uiDirectory: string;
  readonly pages?: readonly ApiPage[];
  /** Identifies the caller; by default every caller is the local admin. */
  readonly identify?: Identify;
  /** The contract to serve; by default Weir's own. */
  readonly operations?: AnyOperations;
}

/** The REST API, `/ws` and the web UI on one listener. */
export interface ApiServer {
  /** Resolves to the bound address, `http://127.0.0.1:3001`. Rejects with the system's error (`EADDRINUSE`). */
  listen(port: number, host: string): Promise<string>;
  /** Stops accepting, drains requests for `graceMs`, then aborts the rest. */
  close(graceMs: number): Promise<void>;
}

const NOTHING_HERE = "There is nothing at this path";

/** Creates the server without listening. */
export function createApiServer(options: ApiServerOptions): ApiServer {
  const gate = watchGate(options.settings);
  const identify = options.identify ?? (() => LOCAL_ADMIN);
  const operations = options.operations ?? weirOperations;
  const routes = compileRouteTable(operations, apiInfo.prefix);
  let server: Server | undefined;
  const app = Fastify({
    logger: false,
    schemaController: { compilersFactory: NO_ROUTE_COMPILERS },
    exposeHeadRoutes: false,
    // Overlong ids are unknown ids; with a lower limit the router would fail instead of responding 404.
    routerOptions: { maxParamLength: MAX_TARGET_BYTES },
    forceCloseConnections: "idle",
    frameworkErrors: (error, _request, reply) => void sendError(reply, errorResponse(error)),
    // The gated server responds; Fastify's own handler would destroy the connection before that.
    clientErrorHandler: () => undefined,
    serverFactory: (handler) => (server = createGatedServer({ gate, handler, events: options.events, identify })),
  });
  app.removeAllContentTypeParsers();
  // The binding reads bodies, since it knows the operation's limit.
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  app.setErrorHandler((error, _request, reply) => {
    const found = errorResponse(error);
    if (found.isInternal) options.log.error({ err: error }, "A request failed");
    return sendError(reply, found);
  });
  registerOperations(app, operations, options.slices, identify);
  registerDocuments(app, operations, options);
  registerUi(app, routes, options.uiDirectory);
  return {
    listen: async (port, host) => {
      await app.listen({ port, host });
      return addressOf(server);
    },
    close: async (graceMs) => {
      options.events.close();
      const cut = setTimeout(() => server?.closeAllConnections(), graceMs);
      try {
        await app.close();
      } finally {
        clearTimeout(cut);
      }
    },
  };
}

/** The gate for the current settings. */
function watchGate(settings: ApiServerOptions["settings"]): Gate {
  const compile = ({ api_host, allowed_api_hosts, public_ip }: SettingsStore["running"]): Gate =>
    compileGate({ boundHost: api_host, allowedApiHosts: allowed_api_hosts, publicIp: public_ip });
  let current = compile(settings.running);
  settings.onChange((running) => (current = compile(running)));
  return (request) => current(request);
}

function registerOperations(
  app: FastifyInstance,
  operations: AnyOperations,
  slices: readonly BoundSlice[],
  identify: Identify,
): void {
  for (const slice of slices) {
    const table = operations[slice.name];
    if (!table) throw new TypeError(`The contract has no slice ${slice.name}`);
    const handlers = slice.operations as Record<string, AnyHandler>;
    for (const [name, operation] of Object.entries(table)) {
      const run =
        slice.switchedOffBy === undefined
          ? bindOperation(operation, handlerOf(slice.name, name, handlers), identify)
          : refusing(slice.switchedOffBy);
      for (const path of [apiInfo.prefix + operation.path, ...(operation.aliases ?? [])]) {
        app.route({
          method: operation.method === "GET" ? ["GET", "HEAD"] : [operation.method],
          url: path.replace(/\{(\w+)\}/g, ":$1"),
          handler: async (request, reply) => {
            const search = request.raw.url?.split("?").slice(1).join("?") ?? "";
            const params = request.params as Record<string, string>;
            // The router matches `/things/` with `/things/:id`.
            if (Object.values(params).includes("")) throw new ApiError("NOT_FOUND", NOTHING_HERE);
            return send(reply, await run({ params, search, source: bodyOf(request.raw), signal: goneSignal(reply) }));
          },
        });
      }
    }
  }
}

function handlerOf(slice: string, name: string, handlers: Readonly<Record<string, AnyHandler>>): AnyHandler {
  const handler = handlers[name];
  if (!handler) throw new TypeError(`The slice ${slice} has no handler for ${name}`);
  return handler;
}

function refusing(feature: string): () => Promise<BoundResponse> {
  return async () => {
    throw new ApiError("NOT_IMPLEMENTED", `The feature ${feature} is switched off (disabled_features)`);
  };
}

/** Aborts when the client disconnects before its response is complete. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) controller.abort();
  });
  return controller.signal;
}

function send(reply: FastifyReply, { status, headers, body }: BoundResponse): FastifyReply {
  void reply.code(status).headers(headers);
  if (body === undefined) return reply.send();
  if (reply.request.method === "HEAD") return sendHead(reply, body);
  if (typeof body === "string") return reply.send(body);
  if (body instanceof Uint8Array) return reply.send(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  return reply.send(Readable.from(body, { objectMode: false }));
}

/** The header of the response to GET, without running a stream to its end. */
function sendHead(reply: FastifyReply, body: NonNullable<BoundResponse["body"]>): FastifyReply {
  const isWhole = typeof body === "string" || body instanceof Uint8Array;
  if (isWhole) void reply.header("content-length", Buffer.byteLength(body));
  else void body[Symbol.asyncIterator]().return?.();
  return reply.send("");
}

function sendError(reply: FastifyReply, { status, body, headers }: ErrorResponse): FastifyReply {
  const text = JSON.stringify(body);
  const { raw, method } = reply.request;
  // A client that reads while it sends can stop sending.
  if (status === 413) void reply.header("connection", "close");
  void reply.code(status).headers(headers).type("application/json; charset=utf-8");
  if (method === "HEAD" || !announcesBody(raw)) return reply.send(text);
  void reply.header("content-length", Buffer.byteLength(text));
  return reply.send(Readable.from(beforeRest(text, raw)));
}

function registerDocuments(app: FastifyInstance, operations: AnyOperations, options: ApiServerOptions): void {
  // Rendered on the first request: few need it, and it would delay every start.
  let openApi: string | undefined;
  let docs: string | undefined;
  const document = (path: string, type: string, text: () => string, policy?: () => string | undefined): void => {
    app.route({
      method: ["GET", "HEAD"],
      url: path,
      handler: (_request, reply) => {
        const body = text();
        const own = policy?.();
        if (own !== undefined) void reply.header("content-security-policy", own);
        return send(reply, { status: 200, headers: { "content-type": type }, body });
      },
    });
  };
  document(
    "/api/openapi.json",
    "application/json; charset=utf-8",
    () => (openApi ??= JSON.stringify(openApiDocument(operations, apiInfo))),
  );
  document("/api/docs", "text/html; charset=utf-8", () => (docs ??= renderApiDocs(operations, apiInfo)));
  for (const page of options.pages ?? []) {
    document(
      page.path,
      "text/html; charset=utf-8",
      () => page.render().html,
      () => page.render().contentSecurityPolicy,
    );
  }
}

function registerUi(app: FastifyInstance, routes: RouteTable, uiDirectory: string): void {
  void app.register(fastifyStatic, {
    root: uiDirectory,
    serve: false,
    cacheControl: false,
    dotfiles: "ignore",
    suppressWarning: true,
  });
  const notFound = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const path = pathOf(request.raw.url ?? "/");
    const allowed = routes.methodsOf(path);
    if (allowed.length > 0) {
      return sendError(reply.header("allow", allowed.join(", ")), refusalResponse("METHOD_NOT_ALLOWED"));
    }
    const isRead = request.raw.method === "GET" || request.raw.method === "HEAD";
    if (isRead || isApiPath(path)) return sendError(reply, refusalResponse("NOT_FOUND", NOTHING_HERE));
    return sendError(reply.header("allow", "GET, HEAD"), refusalResponse("METHOD_NOT_ALLOWED"));
  };
  app.setNotFoundHandler(notFound);
  app.route({
    method: ["GET", "HEAD"],
    url: "/*",
    handler: (request, reply) => {
      const target = request.raw.url ?? "/";
      if (isApiPath(pathOf(target))) return notFound(request, reply);
      const chosen = chooseUiFile(target, uiDirectory);
      if (chosen.kind === "not-found") return notFound(request, reply);
      if (chosen.kind === "file") return reply.header("cache-control", chosen.cacheControl).sendFile(chosen.path);
      return send(reply, {
        status: 200,
        headers: { "content-type": "text/html; charset=utf-8" },
        body: MISSING_BUILD_PAGE,
      });
    },
  });
}

function addressOf(server: Server | undefined): string {
  const address = server?.address();
  if (typeof address !== "object" || address === null) throw new TypeError("The API server has no address");
  return `http://${hostPortText(address.address, address.port)}`;
}

/** The response to a path outside the API. */
type UiResponse =
  | { readonly kind: "file"; readonly path: string; readonly cacheControl: string }
  | { readonly kind: "missing-build" }
  | { readonly kind: "not-found" };

/**
 * Chooses a file of the build, or the UI's document for all routes of the client. Hashed files are immutable; all others
 * are revalidated.
 */
function chooseUiFile(target: string, uiDirectory: string): UiResponse {
  let path: string;
  try {
    path = decodeURIComponent(pathOf(target));
  } catch {
    return { kind: "not-found" };
  }
  if (/[\0\\]|\/\/|(?:^|\/)\.\.?(?:\/|$)/.test(path)) return { kind: "not-found" };
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (path.startsWith("/assets/")) {
    return { kind: "file", path: path.slice(1), cacheControl: "public, max-age=31536000, immutable" };
  }
  if (name.includes(".") && name !== "index.html") {
    return { kind: "file", path: path.slice(1), cacheControl: "no-cache" };
  }
  return existsSync(join(uiDirectory, "index.html")) ? DOCUMENT : { kind: "missing-build" };
}

/** The methods of each path, for 405 responses. */
interface RouteTable {
  /** Empty for an unknown path. */
  methodsOf(path: string): readonly string[];
}

/** Includes aliases; `{id}` matches one segment. */
function compileRouteTable(operations: AnyOperations, prefix: string): RouteTable {
  const methods = new Map<string, Set<string>>();
  for (const table of Object.values(operations)) {
    for (const operation of Object.values(table)) {
      for (const path of [prefix + operation.path, ...(operation.aliases ?? [])]) {
        const known = methods.get(path) ?? new Set<string>();
        methods.set(path, known.add(operation.method));
        if (operation.method === "GET") known.add("HEAD");
      }
    }
  }
  const patterns = [...methods].map(([path, known]) => ({
    pattern: new RegExp(`^${path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, "[^/]+")}$`),
    isExact: !path.includes("{"),
    known: [...known].sort(),
  }));
  // An exact path such as /blocklist/stats shadows a parameter route for its own methods only.
  return {
    methodsOf: (path) =>
      [...new Set(patterns.filter(({ pattern }) => pattern.test(path)).flatMap(({ known }) => known))].sort(),
  };
}
