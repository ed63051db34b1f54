import { after, before, test } from "node:test";
import { HTTP2_RESPONSE_CASES, http2CaseTitle, Http2ResponseJudge } from "@headworks/testkit";
import type { Engine } from "./engine-harness.ts";
import { clientOf, http2Engine } from "./http2-rig.ts";

let judge: Http2ResponseJudge;
let proxy: Engine & AsyncDisposable;
before(async () => {
  judge = await Http2ResponseJudge.start();
  proxy = await http2Engine();
});
after(async () => {
  await proxy[Symbol.asyncDispose]();
  await judge[Symbol.asyncDispose]();
});

for (const each of HTTP2_RESPONSE_CASES) {
  test(`${http2CaseTitle(each)} (of an origin)`, async () => {
    // By prior knowledge, which its client has to have as well.
    await using client = await clientOf("2", proxy, judge.port, { isPlain: true });
    await judge.judge(each, async () => {
      const { status, code } = await client.fetch();
      return code === 0 ? status : undefined;
    });
  });
}
