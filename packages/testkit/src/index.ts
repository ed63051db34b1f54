export { FakeClock } from "./fake-clock.ts";
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
export { peer, type Peer } from "./peer.ts";
export { proxyClient, type ProxiedRequest, type ProxyClient, type ProxyClientOptions } from "./proxy-client.ts";
export { rawClient, RawConnection, secure, type Octets, type RawClientOptions } from "./raw-connection.ts";
export { readResponse, type RawResponse } from "./raw-response.ts";
export { startRawServer, type RawScript, type RawServer } from "./raw-server.ts";
export { runProcess, spawnProcess, type Exit, type SpawnedProcess, type SpawnOptions } from "./spawn-process.ts";
export { temporaryDirectory, type TemporaryDirectory } from "./temporary-directory.ts";
export { waitForEvent, waitUntil, type WaitOptions } from "./wait-until.ts";
