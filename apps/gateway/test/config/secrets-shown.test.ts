import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { adminOperations, DocumentSchema, type DocumentInput } from "@headworks/gateway-contract";
import { temporaryDirectory } from "@headworks/testkit";
import fc from "fast-check";
import { ADMIN, call, DEV, listeners } from "../admin-rig.ts";
import { sluice } from "../cli-rig.ts";
import { startGateway } from "../gateway-rig.ts";

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly const?: unknown;
  readonly "x-secret"?: boolean;
}

/** Places of the schema that may hold a secret, `[]` for entries of lists, `*` for members of mappings. */
function secretPaths(schema: Schema, fieldPath: readonly string[] = []): string[] {
  if (schema["x-secret"] === true) return [fieldPath.join(".")];
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => secretPaths(inner, [...fieldPath, name])),
    ...Object.values(schema.patternProperties ?? {}).flatMap((inner) => secretPaths(inner, [...fieldPath, "*"])),
    ...(schema.anyOf ?? []).flatMap((inner) =>
      secretPaths(inner, [...fieldPath, String(inner.properties?.["type"]?.const)]),
    ),
    ...(schema.items === undefined ? [] : secretPaths(schema.items, [...fieldPath, "[]"])),
  ];
}

/** Each of them, and what its document has there; those of `gateway` also stand at the root. */
const PLACES = [
  "oidc_providers.[].client_secret",
  "routes.[].transforms.request.headers.set.*",
  "routes.[].transforms.request.headers.add.*",
  "routes.[].transforms.response.headers.set.*",
  "routes.[].transforms.response.headers.add.*",
  "consumers.[].credentials.[].api_key.key",
  "consumers.[].credentials.[].basic.password",
  "consumers.[].credentials.[].hmac.secret",
  "policies.[].callout.headers.*",
  "webhooks.[].headers.*",
  "webhooks.[].signing.secret",
  "analytics.traces.headers.*",
] as const;

test("the document of this test has a secret wherever the schema allows one", () => {
  const places = secretPaths(DocumentSchema as Schema).filter((fieldPath) => !fieldPath.startsWith("gateway."));
  assert.deepEqual(places.toSorted(), [...PLACES].toSorted());
});

/** A document with these texts at {@link PLACES}; nothing listens where it would call. */
function documentWith(texts: readonly string[], more: Partial<DocumentInput> = {}): DocumentInput {
  const [oidc = "", set = "", add = "", responseSet = "", responseAdd = "", key = ""] = texts;
  const [password = "", hmac = "", callout = "", webhook = "", signing = "", traces = ""] = texts.slice(6);
  const nowhere = "http://127.0.0.1:1";
  return {
    listeners,
    admin: ADMIN,
    oidc_providers: [
      { name: "o", introspection_endpoint: `${nowhere}/i`, client_id: "me", client_secret: oidc, consumer: "c" },
    ],
    consumers: [
      {
        name: "c",
        credentials: [
          { type: "api_key", key },
          { type: "basic", username: "u", password },
          { type: "hmac", key_id: "k", secret: hmac },
        ],
      },
    ],
    policies: [{ name: "p", callout: { type: "opa", url: `${nowhere}/v1/data/x`, headers: { "X-Callout": callout } } }],
    webhooks: [
      {
        url: `${nowhere}/hook`,
        events: ["config_published", "config_rejected"],
        headers: { "X-Hook": webhook },
        signing: { secret: signing },
      },
    ],
    analytics: { traces: { url: `${nowhere}/v1/traces`, headers: { "X-Traces": traces } } },
    routes: [
      {
        name: "asked",
        match: { path: { type: "prefix", value: "/asked" } },
        action: { type: "respond", status: 200 },
        policies: ["p"],
        auth_required: true,
        transforms: {
          request: { headers: { set: { "X-A": set }, add: { "X-B": add } } },
          response: { headers: { set: { "X-C": responseSet }, add: { "X-D": responseAdd } } },
        },
      },
    ],
    ...more,
  };
}

type Kind = "literal" | "environment" | "file";
const kinds = fc.array(fc.constantFrom<Kind>("literal", "environment", "file"), {
  minLength: PLACES.length,
  maxLength: PLACES.length,
});

test("no secret is told by commands, by the log or by the admin API, wherever it stands and however it is given", async () => {
  await fc.assert(
    fc.asyncProperty(kinds, fc.integer({ min: 100, max: 999 }), async (chosen, salt) => {
      await using directory = await temporaryDirectory();
      // A secret of webhooks is base64 of 24 bytes or more.
      const secrets = PLACES.map((_place, at) =>
        Buffer.from(`planted secret ${salt} number ${at + 10}!`).toString("base64"),
      );
      const environment: Record<string, string> = { ...DEV.environment };
      const texts = await Promise.all(
        secrets.map(async (secret, at) => {
          if (chosen[at] === "literal") return secret;
          if (chosen[at] === "environment") {
            environment[`SECRET_${at}`] = secret;
            return `\${SECRET_${at}}`;
          }
          await writeFile(directory.file(`secret-${at}`), `${secret}\n`);
          return `\${file:${directory.file(`secret-${at}`)}}`;
        }),
      );
      const shown: string[] = [];
      const assertUnseen = (where: string, output: string): void => {
        shown.push(output);
        for (const [at, secret] of secrets.entries()) {
          for (const form of [
            secret,
            encodeURIComponent(secret),
            Buffer.from(secret).toString("base64").slice(0, 40),
          ]) {
            assert.ok(!output.includes(form), `${PLACES[at]} (${chosen[at]}) is in ${where}: ${output.slice(0, 2000)}`);
          }
        }
      };
      const good = documentWith(texts);
      // Wrong where a secret stands, and elsewhere.
      const bad = documentWith(
        texts.map((text, at) => (at % 2 === 0 ? `${text}\${` : `${text}\n`)),
        { services: [{ name: "s", upstream: "none" }] },
      );
      await writeFile(directory.file("good.json"), JSON.stringify(good));
      await writeFile(directory.file("bad.json"), JSON.stringify(bad));
      await writeFile(directory.file("other.json"), JSON.stringify(documentWith(texts.toReversed())));
      const [goodFile, badFile, otherFile] = ["good", "bad", "other"].map((name) => directory.file(`${name}.json`));
      assert.ok(goodFile !== undefined && badFile !== undefined && otherFile !== undefined);
      for (const args of [
        ["validate", goodFile],
        ["validate", "--json", goodFile],
        ["validate", badFile],
        ["validate", "--json", badFile],
        ["validate", "--offline", "--json", goodFile],
        ["lint", goodFile],
        ["lint", "--json", badFile],
        ["plan", goodFile, otherFile],
        ["plan", "--json", goodFile, otherFile],
        ["diff", goodFile, badFile],
        ["diff", "--json", goodFile, otherFile],
        ["explain", "-c", goodFile, "--path", "/asked"],
        ["explain", "--json", "-c", badFile, "--path", "/asked"],
        ["serve", "-c", badFile],
      ]) {
        const { out, err } = await sluice(args, environment);
        assertUnseen(`sluice ${args.join(" ")}`, out + err);
      }
      await using gateway = await startGateway(good, { environment });
      for (const fields of [
        [],
        ["X-API-Key: wrong"],
        ["Authorization: Bearer wrong"],
        [`X-API-Key: ${secrets[5] ?? ""}`],
      ]) {
        const response = await gateway.send({ path: "/asked", fields });
        assertUnseen("a response of the data plane", response.body.toString());
      }
      const { outcome } = await gateway.reload(bad);
      assert.equal(outcome, "rejected");
      for (const { method, path } of Object.values(adminOperations)) {
        if (method !== "GET" || path === "/events/stream") continue;
        const filled = path.replace("{generation}", "1").replace("{consumer}", "c").replace("{upstream}", "u");
        for (const accept of ["application/yaml", "application/json"]) {
          assertUnseen(`GET ${path}`, (await call(gateway, filled, { headers: { accept } })).text);
        }
      }
      for (const [method, path, body] of [
        ["PATCH", "/config", JSON.stringify(bad)],
        ["PATCH", "/config?dry_run=true&overwrite=true", JSON.stringify(good)],
        ["POST", "/config/validate", JSON.stringify(bad)],
        ["POST", "/config/plan", JSON.stringify(documentWith(texts.toReversed()))],
        ["POST", "/explain", JSON.stringify({ path: "/asked", consumer: "c" })],
      ] as const) {
        assertUnseen(`${method} ${path}`, (await call(gateway, path, { method, body })).text);
      }
      assertUnseen("the log", gateway.log.map((line) => JSON.stringify(line)).join("\n"));
      assert.ok(shown.join("\n").length > 10_000);
    }),
    { numRuns: 6, endOnFailure: true },
  );
});
