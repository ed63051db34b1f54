import { createServer } from "node:net";
import { certOperations, configOperations } from "@headworks/capture-contract";
import type { ProxyConfig } from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { hostPortText } from "@headworks/host-patterns";
import { callJson, shownUrl } from "./api-connection.ts";
import type { Finding, CheckContext } from "./doctor.ts";

/** Whether a port is free, or held by the service itself. The ports of a service that was named are its own affair. */
export async function checkPort(
  { settings, health, address, isServiceNamed }: CheckContext,
  which: "proxy" | "api",
): Promise<Finding> {
  const name = which === "proxy" ? "Proxy port" : "API port";
  if (health !== undefined && isServiceNamed) {
    const { host } = new URL(which === "proxy" ? health.proxy_address : health.api_address);
    return { name, status: "ok", detail: `${host} is used by the Weir at ${shownUrl(address)}` };
  }
  if (!settings) return { name, status: "skip", detail: "the settings cannot be read" };
  const [port, host] =
    which === "proxy" ? [settings.proxy_port, settings.host] : [settings.api_port, settings.api_host];
  if (port === 0) return { name, status: "ok", detail: "the system chooses one" };
  const code = await listenProblem(port, host);
  if (code === undefined) return { name, status: "ok", detail: `${port} is free` };
  const own = health && new URL(which === "proxy" ? health.proxy_address : health.api_address);
  if (code === "EADDRINUSE" && own && Number(own.port || 80) === port) {
    return { name, status: "ok", detail: `${port} is used by the running Weir` };
  }
  const flag = which === "proxy" ? "--proxy-port" : "--api-port";
  if (code === "EADDRINUSE") {
    return {
      name,
      status: "fail",
      detail: `${port} on ${host} is used by another program`,
      advice: `stop it, or choose another port with ${flag}`,
    };
  }
  return {
    name,
    status: "fail",
    detail: `${hostPortText(host, port)} cannot be used (${code})`,
    advice: `choose another with ${flag} or --host`,
  };
}

async function listenProblem(port: number, host: string): Promise<string | undefined> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  server.listen(port, host, () => server.close(() => resolve(undefined)));
  return await promise;
}

/** One HTTPS request through the running proxy, step by step. That interception is off may be intended. */
export async function checkInterception({ health, address }: CheckContext): Promise<Finding> {
  const name = "Interception";
  if (!health) return { name, status: "skip", detail: "the service does not run" };
  try {
    const config = (await callJson(address, configOperations.getConfig, {})).value as ProxyConfig;
    if (!config.intercept_https) {
      return {
        name,
        status: "warn",
        detail: "is off, so HTTPS is tunnelled and not read",
        advice: "`weir config update --intercept-https` switches it on",
      };
    }
    const { value } = await callJson(address, certOperations.testInterception, {});
    const { ok, steps } = value as { ok: boolean; steps: { name: string; ok: boolean; detail: string }[] };
    if (ok) return { name, status: "ok", detail: "an HTTPS request through the proxy was read and answered" };
    const broken = steps.find((step) => !step.ok);
    return {
      name,
      status: "fail",
      detail: broken ? `${broken.name}: ${broken.detail}` : "the test request failed",
      advice: "the service's log says more (WEIR_LOG=debug)",
    };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    return { name, status: "fail", detail: `the test could not be run: ${error.message}` };
  }
}
