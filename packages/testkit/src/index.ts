export { anyCharacter } from "./any-character.ts";
export { FakeClock } from "./fake-clock.ts";
export {
  FLAG,
  FRAME,
  frame,
  FrameReader,
  GET,
  PREFACE,
  request,
  section,
  settings,
  u32,
  type ReadFrame,
} from "./http2-frames.ts";
export {
  collect,
  http2Client,
  websocketFields,
  startHttp2Origin,
  startRawHttp2Origin,
  startResettingHttp2Origin,
  type Http2Response,
  type Http2Client,
  type Http2Origin,
  type StreamHandler,
  type RawResponder,
} from "./http2-peers.ts";
export { HPACK_CASES } from "./hpack-cases.ts";
export { HTTP2_RESPONSE_CASES, Http2ResponseJudge } from "./http2-response-cases.ts";
export { http2CaseTitle, runHttp2Case } from "./http2-conformance.ts";
export { HTTP2_CASES, type Http2Case } from "./http2-cases.ts";
export type { Closable, LoopbackHost } from "./listening.ts";
export {
  credentials,
  echo,
  startOrigin,
  type Origin,
  type OriginOptions,
  type OriginTls,
  type SeenRequest,
} from "./origin.ts";
export { heapGrowthBytes, oldSpaceGrowthBytes } from "./heap-growth.ts";
export { peer, type Peer } from "./peer.ts";
export { processorMs } from "./processor-time.ts";
export { proxyClient, type ProxiedRequest, type ProxyClient, type ProxyClientOptions } from "./proxy-client.ts";
export { rawClient, RawConnection, secure, type Octets, type RawClientOptions } from "./raw-connection.ts";
export { readResponse, type RawResponse } from "./raw-response.ts";
export { startRawServer, type RawScript, type RawServer } from "./raw-server.ts";
export { runProcess, spawnProcess, type Exit, type SpawnedProcess, type SpawnOptions } from "./spawn-process.ts";
export { temporaryDirectory, type TemporaryDirectory } from "./temporary-directory.ts";
export { waitForEvent, waitUntil, type WaitOptions } from "./wait-until.ts";
export { defaultTimeoutMs, withTimeout } from "./timeout.ts";
