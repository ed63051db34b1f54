import { join } from "node:path";
import { spawnProcess, temporaryDirectory } from "@headworks/testkit";

const MAIN = join(import.meta.dirname, "../../apps/capture-proxy/bin/weir.js");

/** A real Weir over an empty data folder; `await using` ends it and removes its data. */
export interface RunningWeir extends AsyncDisposable {
  /** Without a trailing slash. */
  readonly apiUrl: string;
  readonly proxyPort: number;
  /** A call of the API below `/api`; returns the parsed response. Rejects unless the status is 2xx. */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
}

/** Starts Weir on free ports and resolves when it listens. */
export async function startWeir(...args: readonly string[]): Promise<RunningWeir> {
  const folder = await temporaryDirectory();
  const options = ["serve", "--json", `--data-dir=${folder.file("data")}`, "--proxy-port=0", "--api-port=0", ...args];
  const child = await spawnProcess(process.execPath, [MAIN, ...options]);
  const stop = async (): Promise<void> => {
    await child.stop();
    await folder.remove();
  };
  try {
    const [line] = await child.waitForOutput(/^\{"proxy".*\}$/mu, 30_000);
    const { proxy, api } = JSON.parse(line) as { readonly proxy: string; readonly api: string };
    const apiUrl = api.replace(/\/$/u, "");
    return {
      apiUrl,
      proxyPort: Number(new URL(proxy).port),
      call: async (...call) => await callApi(apiUrl, ...call),
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function callApi(apiUrl: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${apiUrl}/api${path}`, {
    method,
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} got ${response.status}: ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}
