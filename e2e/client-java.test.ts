import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before } from "node:test";
import { peer, runProcess } from "@headworks/testkit";
import { startBench, testClients } from "./client-rig.ts";
import type { Bench, ClientCase } from "./client-rig.ts";
import { Cleanups } from "./rig.ts";

const java = peer("java");
const keytool = peer("keytool");
const skip = java.skip === false ? keytool.skip : java.skip;
const cleanups = new Cleanups();
let bench: Bench;
let trustStore = "";
let source = "";

/** Java's own client and own settings; the program asks for each URL it is given. */
const PROGRAM = `import java.net.URI;
import java.net.http.*;

public class Client {
  public static void main(String[] arguments) throws Exception {
    var body = arguments.length > 2 ? HttpRequest.BodyPublishers.ofString(arguments[2]) : HttpRequest.BodyPublishers.noBody();
    var request = HttpRequest.newBuilder(URI.create(arguments[0])).method(arguments[1], body).build();
    var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofByteArray());
    System.out.write(answer.body());
    System.out.flush();
  }
}
`;

before(async () => {
  if (skip !== false) return;
  bench = await startBench(cleanups);
  source = bench.directory.file("Client.java");
  await writeFile(source, PROGRAM);
  trustStore = bench.directory.file("trust.p12");
  const { code, stdout, stderr } = await runProcess(
    keytool.path,
    [
      "-importcert",
      "-noprompt",
      "-alias",
      "weir",
      "-file",
      bench.weir.caFile,
      "-keystore",
      trustStore,
      "-storetype",
      "PKCS12",
      "-storepass",
      "changeit",
    ],
    { timeoutMs: 60_000 },
  );
  assert.equal(code, 0, stdout + stderr);
});
after(() => cleanups.run());

const running =
  (method: string, ...body: string[]): ClientCase["run"] =>
  async ({ weir }, url, trusts) => {
    const settings = {
      "https.proxyHost": "127.0.0.1",
      "https.proxyPort": String(weir.proxyPort),
      "http.proxyHost": "127.0.0.1",
      "http.proxyPort": String(weir.proxyPort),
      // Loopback names are not proxied unless this says so.
      "http.nonProxyHosts": "",
      ...(trusts
        ? {
            "javax.net.ssl.trustStore": trustStore,
            "javax.net.ssl.trustStoreType": "PKCS12",
            "javax.net.ssl.trustStorePassword": "changeit",
          }
        : {}),
    };
    const properties = Object.entries(settings).map(([name, value]) => `-D${name}=${value}`);
    return await runProcess(java.path, ["-XX:TieredStopAtLevel=1", ...properties, source, url, method, ...body], {
      timeoutMs: 60_000,
    });
  };

const cases: ClientCase[] = [
  { name: "Java HttpClient", path: "/java?x=1", run: running("GET") },
  { name: "Java HttpClient over plain HTTP", path: "/java-plain", plain: true, run: running("GET") },
  {
    name: "Java HttpClient with a body",
    path: "/java-post",
    method: "POST",
    body: Buffer.from("sent by Java"),
    run: running("POST", "sent by Java"),
  },
];
testClients(
  () => bench,
  cases.map((each) => ({ ...each, skip })),
);
