import { after, before, test } from "node:test";
import { HTTP2_RESPONSE_CASES, http2CaseTitle, Http2ResponseJudge } from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "../gateway-rig.ts";
import { proxied } from "../route-documents.ts";

let judge: Http2ResponseJudge;
let gateway: TestGateway;
before(async () => {
  judge = await Http2ResponseJudge.start();
  gateway = await startGateway({ ...serving("api", [judge.port], { protocol: "h2c" }), routes: [proxied("api")] });
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await judge[Symbol.asyncDispose]();
});

for (const each of HTTP2_RESPONSE_CASES) {
  test(`${http2CaseTitle(each)} (of an upstream)`, async () => {
    await judge.judge(each, async () => {
      const response = await gateway.send({ path: "/" }).catch(() => undefined);
      return response?.status;
    });
  });
}
