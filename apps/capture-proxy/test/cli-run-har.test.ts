import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { peer, startOrigin, temporaryDirectory } from "@headworks/testkit";
import { weir } from "./cli-rig.ts";

interface Har {
  readonly log: {
    readonly entries: readonly {
      readonly request: { readonly url: string };
      readonly response: { readonly status: number; readonly content: { readonly text?: string } };
    }[];
  };
}

const curl = peer("curl");

test("weir run --har writes what the program sent and got, in its order", { skip: curl.skip }, async () => {
  await using origin = await startOrigin({
    handler: (request, response) => void response.end(`you asked for ${request.url ?? ""}`),
  });
  await using directory = await temporaryDirectory();
  const file = directory.file("run.har");
  const urls = [`${origin.url}/first`, `${origin.url}/second?x=1`];
  const result = await weir(["run", "--isolated", "--har", file, "--", curl.path, "-sS", ...urls]);
  assert.equal(result.code, 0, result.stderr);
  const { log } = JSON.parse(await readFile(file, "utf8")) as Har;
  assert.deepEqual(
    log.entries.map((entry) => [entry.request.url, entry.response.status, entry.response.content.text]),
    [
      [urls[0], 200, "you asked for /first"],
      [urls[1], 200, "you asked for /second?x=1"],
    ],
  );
});
