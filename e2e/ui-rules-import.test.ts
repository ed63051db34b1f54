import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { callApi, uiFile, waitForCount } from "./ui-rig.ts";
import type { UiBench } from "./ui-rig.ts";

const journey = uiFile();

interface Imported {
  /** The chosen file; the wizard guesses its format from name and text. */
  readonly file: string;
  readonly format: string;
  readonly text: (origin: string) => string;
  /** A path, and the mock's response there. */
  readonly path: string;
  readonly status: number;
  readonly body: unknown;
  readonly method?: string;
}

const har = (origin: string): string =>
  JSON.stringify({
    log: {
      version: "1.2",
      creator: { name: "test", version: "1" },
      entries: [
        {
          startedDateTime: "2026-01-01T00:00:00.000Z",
          time: 5,
          request: {
            method: "POST",
            url: `${origin}/from-har?step=1`,
            httpVersion: "HTTP/1.1",
            headers: [],
            queryString: [{ name: "step", value: "1" }],
            cookies: [],
            headersSize: -1,
            bodySize: 0,
          },
          response: {
            status: 201,
            statusText: "Created",
            httpVersion: "HTTP/1.1",
            headers: [
              { name: "Content-Type", value: "application/json" },
              { name: "Content-Length", value: "999" },
            ],
            cookies: [],
            content: { size: 14, mimeType: "application/json", text: '{"from":"har"}' },
            redirectURL: "",
            headersSize: -1,
            bodySize: 14,
          },
          cache: {},
          timings: { send: 1, wait: 3, receive: 1 },
        },
      ],
    },
  });

const openApiJson = (origin: string): string =>
  JSON.stringify({
    openapi: "3.0.3",
    info: { title: "Shop", version: "1" },
    servers: [{ url: origin }],
    paths: {
      "/orders-of/{customer}": {
        parameters: [{ name: "customer", in: "path", required: true, schema: { type: "string" } }],
        get: {
          responses: {
            200: {
              description: "ok",
              content: { "application/json": { schema: { $ref: "#/components/schemas/Orders" } } },
            },
          },
        },
      },
    },
    components: {
      schemas: {
        Orders: {
          type: "object",
          required: ["total", "paid"],
          properties: { total: { type: "integer", example: 3 }, paid: { type: "boolean", default: true } },
        },
      },
    },
  });

const openApiYaml = (origin: string): string => `# A service that does not exist yet
openapi: 3.1.0
info: { title: Shop, version: "1" }
servers:
  - url: ${origin}
paths:
  /from-yaml:
    delete:
      responses:
        "404":
          description: gone
          content:
            application/json:
              examples:
                gone: { value: { gone: yes } }
`;

const postman = (origin: string): string =>
  JSON.stringify({
    info: {
      _postman_id: "1",
      name: "Shop",
      schema: "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
    },
    variable: [{ key: "base", value: origin }],
    item: [
      {
        name: "Orders",
        item: [
          {
            name: "Put an order",
            request: {
              method: "PUT",
              header: [],
              url: { raw: "{{base}}/from-postman", host: ["{{base}}"], path: ["from-postman"] },
            },
            response: [
              {
                name: "Accepted",
                originalRequest: { method: "PUT", header: [], url: { raw: "{{base}}/from-postman" } },
                code: 202,
                header: [{ key: "Content-Type", value: "application/json" }],
                body: '{"from":"postman"}',
              },
            ],
          },
        ],
      },
    ],
  });

const DOCUMENTS: readonly Imported[] = [
  {
    file: "shop.har",
    format: "HAR",
    text: har,
    path: "/from-har?step=1",
    method: "POST",
    status: 201,
    body: { from: "har" },
  },
  {
    file: "shop.json",
    format: "OpenAPI 3",
    text: openApiJson,
    path: "/orders-of/ann",
    status: 200,
    body: { total: 3, paid: true },
  },
  {
    file: "shop.yaml",
    format: "OpenAPI 3",
    text: openApiYaml,
    path: "/from-yaml",
    method: "DELETE",
    status: 404,
    body: { gone: "yes" },
  },
  {
    file: "shop.postman_collection.json",
    format: "Postman collection",
    text: postman,
    path: "/from-postman",
    method: "PUT",
    status: 202,
    body: { from: "postman" },
  },
];

async function openWizard(page: Page): Promise<Locator> {
  await page.getByRole("button", { name: "More actions", exact: true }).click();
  await page.getByRole("menuitem", { name: "Import…" }).click();
  const dialog = page.getByRole("dialog", { name: "Import mocks" });
  await dialog.waitFor();
  return dialog;
}

async function choose(dialog: Locator, name: string, text: string): Promise<void> {
  await dialog
    .getByLabel("Document")
    .setInputFiles({ name, mimeType: "application/octet-stream", buffer: Buffer.from(text) });
}

async function mocks(
  bench: UiBench,
): Promise<readonly { readonly id: string; readonly collection_id: string | null }[]> {
  return await bench.weir.get("/mocks");
}

for (const document of DOCUMENTS) {
  journey(`${document.file} is previewed without changes, then imported, and its mocks respond`, async (bench) => {
    const { id: collection } = (await callApi(bench.weir, "POST", "/mocks/collections", { name: document.file })) as {
      readonly id: string;
    };
    const page = await bench.open("/mocks");
    const dialog = await openWizard(page);
    await choose(dialog, document.file, document.text(bench.origin.url));
    await dialog.getByRole("combobox", { name: "Format" }).getByText(document.format).waitFor();
    await dialog.getByRole("combobox", { name: "Collection" }).click();
    await page.getByRole("option", { name: document.file }).click();
    await dialog.getByRole("button", { name: "Preview" }).click();
    const preview = dialog.getByRole("group", { name: "Preview" });
    await preview.getByText("1 mock", { exact: true }).waitFor();
    await preview
      .getByText(new RegExp(document.path.split(/[?/]/u)[1] ?? "", "u"))
      .first()
      .waitFor();
    assert.deepEqual(await mocks(bench), []);
    await dialog.getByRole("button", { name: "Import 1 mock" }).click();
    await waitForCount(dialog, 0);
    const [made] = await mocks(bench);
    assert.equal(made?.collection_id, collection);
    const response = await bench.client.fetch({
      url: bench.origin.url + document.path,
      ...(document.method === undefined ? {} : { method: document.method }),
    });
    assert.equal(response.status, document.status);
    assert.deepEqual(JSON.parse(response.body.toString()), document.body);
    await callApi(bench.weir, "DELETE", `/mocks/${made.id}`);
    await callApi(bench.weir, "DELETE", `/mocks/collections/${collection}`);
  });
}

journey("An unreadable document is refused with the reason, and another one can be chosen", async (bench) => {
  const page = await bench.open("/mocks");
  const dialog = await openWizard(page);
  await choose(dialog, "broken.yaml", "openapi: 3.1.0\npaths:\n  /a: [\n");
  await dialog.getByRole("button", { name: "Preview" }).click();
  const refusal = dialog.getByRole("alert");
  await refusal.waitFor();
  assert.match(await refusal.innerText(), /line|YAML/iu);
  await choose(dialog, "shop.yaml", openApiYaml(bench.origin.url));
  await waitForCount(refusal, 0);
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByRole("button", { name: "Import 1 mock" }).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await waitForCount(dialog, 0);
  assert.deepEqual(await mocks(bench), []);
});
