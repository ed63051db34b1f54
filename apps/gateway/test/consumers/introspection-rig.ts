import type { IncomingMessage } from "node:http";
import type { DocumentInput } from "@headworks/gateway-contract";
import { startOrigin, type Origin } from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "../gateway-rig.ts";
import { keyed, OPEN_AND_CLOSED, proxied } from "./consumer-rig.ts";

export type Provider = NonNullable<NonNullable<DocumentInput["gateway"]>["oidc_providers"]>[number];

export const SECRET = "s3cret of the & client";
export const START_MS = Date.parse("2027-01-01T00:00:00Z");

const METADATA = "/.well-known/openid-configuration";

/** A question as it arrived. */
interface Question {
  readonly token: string | null;
  readonly hint: string | null;
  readonly authorization: string | undefined;
  readonly type: string | undefined;
}

export interface Endpoint extends Origin {
  readonly questions: Question[];
  /** What it says of each token; a number is a status, and what is not named is not active. */
  readonly responses: Map<string, object | number | string>;
  /** What the issuer that it belongs to says of itself; a number is a status, a text the body. */
  metadata: object | number | string;
  lookups: number;
  /** Set: answers wait for it. */
  gate: Promise<void> | undefined;
}

export async function startEndpoint(options: Parameters<typeof startOrigin>[0] = {}): Promise<Endpoint> {
  const questions: Question[] = [];
  const responses: Endpoint["responses"] = new Map();
  const read = async (request: IncomingMessage): Promise<URLSearchParams> => {
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += String(piece);
    return new URLSearchParams(text);
  };
  const origin = await startOrigin({
    ...options,
    handler: (request, response) => {
      if (request.url === METADATA) {
        endpoint.lookups += 1;
        const { metadata } = endpoint;
        if (typeof metadata === "number") response.writeHead(metadata).end("{}");
        else response.end(typeof metadata === "string" ? metadata : JSON.stringify(metadata));
        return;
      }
      void read(request).then(async (form) => {
        const { authorization, "content-type": type } = request.headers;
        const token = form.get("token");
        questions.push({ token, hint: form.get("token_type_hint"), authorization, type });
        await endpoint.gate;
        const reply = responses.get(token ?? "") ?? { active: false };
        if (typeof reply === "number") response.writeHead(reply).end("{}");
        else response.end(typeof reply === "string" ? reply : JSON.stringify(reply));
      });
    },
  });
  const issuer = `${options.tls === undefined ? "http://127.0.0.1" : "https://localhost"}:${origin.port}`;
  const metadata: Endpoint["metadata"] = { issuer, introspection_endpoint: `${issuer}/introspect` };
  const endpoint: Endpoint = Object.assign(origin, { questions, responses, metadata, lookups: 0, gate: undefined });
  return endpoint;
}

export interface Rig extends AsyncDisposable {
  readonly origin: Origin;
  readonly endpoint: Endpoint;
  readonly gateway: TestGateway;
  set(seconds: number): void;
  /** Lets time pass for everything that does not go by the wall clock. */
  skip(ms: number): void;
  ask(token: string, path?: string): Promise<number>;
}

/**
 * A gateway with one provider, and those of `more`; `discovered` gives its issuer, which says where to ask, otherwise the
 * document does.
 */
export async function rig(
  provider: Partial<Provider> = {},
  more: DocumentInput = {},
  discovered?: (port: number) => string,
): Promise<Rig> {
  const { oidc_providers: others = [], ...rest } = more;
  const origin = await startOrigin();
  const endpoint = await startEndpoint();
  let nowMs = START_MS;
  let skippedMs = 0;
  const issuer = discovered?.(endpoint.port) ?? "https://issuer.test";
  const place =
    discovered === undefined ? { introspection_endpoint: `http://127.0.0.1:${endpoint.port}/introspect` } : {};
  const document: DocumentInput = {
    ...serving("api", [origin.port]),
    routes: [
      ...OPEN_AND_CLOSED,
      proxied("scoped", "/scoped", { authorization: { required_scopes: ["orders:write"] } }),
    ],
    consumers: [keyed("acme", "key-of-acme"), { name: "zoo", credentials: [{ type: "jwt", issuer }] }],
    ...rest,
    gateway: {
      ...rest.gateway,
      oidc_providers: [
        {
          name: "idp",
          ...place,
          client_id: "gateway one",
          client_secret: "${SECRET}",
          issuer,
          ...provider,
        },
        ...others,
      ],
    },
  };
  const clock = { now: () => nowMs, monotonic: () => performance.now() + skippedMs };
  const gateway = await startGateway(document, { environment: { SECRET }, clock });
  return {
    origin,
    endpoint,
    gateway,
    skip: (ms) => void (skippedMs += ms),
    set: (seconds) => (nowMs = START_MS + seconds * 1000),
    ask: async (token, path = "/closed") =>
      (await gateway.send({ path, fields: [`Authorization: Bearer ${token}`] })).status,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await endpoint[Symbol.asyncDispose]();
      await origin[Symbol.asyncDispose]();
    },
  };
}
