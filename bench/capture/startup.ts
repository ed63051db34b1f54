import { spawnProcess, temporaryDirectory } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Outcome } from "./memory.ts";
import { accepts, freePort, weirArguments } from "./proxies.ts";
import { median } from "./report.ts";

const STARTS = 10;
const LIMIT_MS = 1000;

/**
 * Measures the time from spawn until both proxy and API accept connections: for the very first start (new data directory,
 * no compile cache), for first starts with a warm compile cache, and for ordinary starts with the same data directory.
 */
export async function measureStartup(): Promise<Outcome> {
  await using directory = await temporaryDirectory();
  const originCaFile = directory.file("origin-ca.pem");
  writeFileSync(originCaFile, CertificateAuthority.create().certificatePem);
  const start = async (dataDirectory: string, cache: string): Promise<number> => {
    mkdirSync(directory.file(dataDirectory), { recursive: true });
    return await startOnce(directory.file(dataDirectory), originCaFile, directory.file(cache));
  };
  const cold: number[] = [];
  for (let at = 0; at < 3; at += 1) cold.push(await start(`cold-${at}`, `cache-${at}`));
  const fresh: number[] = [];
  for (let at = 0; at < STARTS; at += 1) fresh.push(await start(`fresh-${at}`, "cache-0"));
  const ordinary: number[] = [];
  for (let at = 0; at < STARTS; at += 1) ordinary.push(await start("fresh-0", "cache-0"));
  const isHeld = median(ordinary) < LIMIT_MS && median(fresh) < LIMIT_MS;
  const line = (title: string, values: readonly number[]): string =>
    `  ${median(values).toFixed(0).padStart(5)} ms  ${title} (${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)}, ${values.length} starts)`;
  console.log(
    [
      `From spawn until both listeners accept, median; limit ${LIMIT_MS} ms for the first two: ${isHeld ? "pass" : "FAIL"}`,
      line("same data directory", ordinary),
      line("new data directory, a CA is made", fresh),
      line("new data directory, no compile cache", cold),
    ].join("\n"),
  );
  return { figures: { ordinary, fresh, cold }, isHeld };
}

async function startOnce(dataDirectory: string, originCaFile: string, cache: string): Promise<number> {
  const ports = { proxy: await freePort(), api: await freePort() };
  const startMs = performance.now();
  await using child = await spawnProcess(process.execPath, weirArguments(dataDirectory, originCaFile, ports), {
    env: { NODE_COMPILE_CACHE: cache },
  });
  let hasEnded = false;
  void child.exited.then(() => (hasEnded = true));
  for (const port of [ports.proxy, ports.api]) {
    while (!(await accepts(port))) {
      if (hasEnded) throw new Error(`Weir exited before it listened: ${child.stderr()}`);
      await sleep(2);
    }
  }
  return performance.now() - startMs;
}
