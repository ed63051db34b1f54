import { ProxyListener, serveSocks5 } from "#connection/listener.ts";
import { credentialsCheck } from "#connection/socks5-connection.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";

/** An engine that listens for SOCKS5 beside HTTP; stopping it stops both. */
export interface SocksEngine extends Engine {
  readonly socksPort: number;
}

/** @param login  user name and password that clients of SOCKS5 must know */
export async function startSocksEngine(
  options: EngineOptions = {},
  login?: readonly [string, string],
): Promise<SocksEngine> {
  const engine = await startEngine(options);
  const check = login === undefined ? undefined : credentialsCheck(...login);
  const listener = new ProxyListener(engine.services, serveSocks5(check));
  const { address, port } = await listener.listen(0, "127.0.0.1");
  engine.own.add(address, port);
  return {
    ...engine,
    socksPort: port,
    stop: async (graceMs) => {
      await listener.close(0);
      await engine.stop(graceMs);
    },
  };
}
