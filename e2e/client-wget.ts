import { peer, runProcess } from "@headworks/testkit";
import type { ClientCase } from "./client-rig.ts";

const wget = peer("wget");
const getting =
  (...args: string[]): ClientCase["run"] =>
  async ({ weir }, url, trusts) =>
    await runProcess(
      wget.path,
      ["-q", "-O", "-", "--tries=1", ...(trusts ? [`--ca-certificate=${weir.caFile}`] : []), ...args, url],
      {
        env: { https_proxy: weir.proxyUrl, http_proxy: weir.proxyUrl },
      },
    );

const form = "a=1&b=two";

const cases: ClientCase[] = [
  { name: "wget", path: "/wget?x=1", run: getting() },
  { name: "wget of plain HTTP", path: "/wget-plain", plain: true, run: getting() },
  {
    name: "wget with a form",
    path: "/wget-form",
    method: "POST",
    body: Buffer.from(form),
    run: getting(`--post-data=${form}`),
  },
];
export const wgetCases: readonly ClientCase[] = cases.map((each) => ({ ...each, skip: wget.skip }));
