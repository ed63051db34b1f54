import { after, before, test } from "node:test";
import {
  FLAG,
  FRAME,
  frame,
  GET,
  HPACK_CASES,
  HTTP2_CASES,
  http2CaseTitle,
  RawConnection,
  runHttp2Case,
  section,
} from "@headworks/testkit";
import type { Http2Case } from "@headworks/testkit";
import { MAX_CONCURRENT_STREAMS } from "#connection/http2-connection.ts";
import type { Engine } from "./engine-harness.ts";
import { http2Engine, secureTunnelTo, startVersioned, tunnelTo } from "./http2-rig.ts";
import type { VersionedOrigin } from "./http2-rig.ts";

let secure: VersionedOrigin;
let plain: VersionedOrigin;
let proxy: Engine & AsyncDisposable;
before(async () => {
  secure = await startVersioned("2", () => ({ body: "here" }));
  plain = await startVersioned("2", () => ({ body: "here" }), { isPlain: true });
  proxy = await http2Engine();
});
after(async () => {
  await proxy[Symbol.asyncDispose]();
  await secure[Symbol.asyncDispose]();
  await plain[Symbol.asyncDispose]();
});

type Way = "by prior knowledge" | "over TLS";

/** A connection inside a tunnel. */
async function connectTo(way: Way): Promise<RawConnection> {
  return new RawConnection(
    way === "over TLS"
      ? await secureTunnelTo(proxy, secure.port, ["h2"])
      : await tunnelTo(proxy, `localhost:${plain.port}`),
  );
}

const REFUSED_STREAM = 7;
const open = (at: number): Buffer => frame(FRAME.headers, FLAG.endHeaders, 2 * at + 1, section(GET));

/** The table counts on a service that announces four streams. */
const CASES: readonly Http2Case[] = [
  ...[...HTTP2_CASES, ...HPACK_CASES].filter(({ section: where }) => where !== "5.1.2"),
  {
    section: "5.1.2",
    what: "a stream more than announced",
    bytes: Array.from({ length: MAX_CONCURRENT_STREAMS + 1 }, (_, at) => open(at)),
    outcome: { kind: "stream error", stream: 2 * MAX_CONCURRENT_STREAMS + 1, codes: [REFUSED_STREAM] },
  },
];

for (const way of ["by prior knowledge", "over TLS"] as const) {
  for (const each of CASES) {
    test(`${http2CaseTitle(each)} (inside CONNECT, ${way})`, async () => {
      await using client = await connectTo(way);
      await runHttp2Case(client, each);
    });
  }
}
