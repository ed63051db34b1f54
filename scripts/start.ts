import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { ignoreSignals } from "@headworks/process-signals";
import { entryOptions } from "./entry-options.ts";
import { runServices } from "./services.ts";
import type { Service } from "./services.ts";
import { repositoryRoot } from "./source-tree.ts";
import { ensureUi } from "./ui-build.ts";

const QUICKSTART = "examples/gateway/quickstart.yaml";

const TRY_SLUICE = `
Sluice, with ${QUICKSTART}, to try in another terminal:
  curl -H 'X-API-Key: acme-quickstart-key' http://127.0.0.1:8080/v2/hello
  curl -i -H 'X-API-Key: acme-quickstart-key' http://127.0.0.1:8080/v1/hello
  for n in 1 2 3 4; do curl -i -H 'X-API-Key: trial-quickstart-key' http://127.0.0.1:8080/v2/; done
  curl http://127.0.0.1:2019/quotas/usage
`;

/** The services of `npm start`. Arguments after `--` go to Weir. */
function servicesToStart(args: readonly string[]): Service[] {
  const weir = join(repositoryRoot, "apps/capture-proxy/bin/weir.js");
  const sluice = join(repositoryRoot, "apps/gateway/bin/sluice.js");
  return [
    { name: "weir", nodeOptions: entryOptions(weir), entry: weir, args: ["serve", ...args] },
    { name: "quickstart", entry: join(repositoryRoot, "scripts/quickstart-origins.ts"), args: [] },
    {
      name: "sluice",
      nodeOptions: entryOptions(sluice),
      entry: sluice,
      args: ["serve", "--config", join(repositoryRoot, QUICKSTART)],
      // The request log on standard output would hide the printed commands.
      isQuiet: true,
      announcement: { after: /^Sluice serves /mu, text: TRY_SLUICE },
      environment: {
        GATEWAY_STATE_DB: process.env["GATEWAY_STATE_DB"] ?? join(dataHome(), "sluice", "quickstart.db"),
        GATEWAY_ADMIN_DEV: "1",
        // There is no load balancer.
        GATEWAY_SHUTDOWN_DELAY_MS: "0",
      },
    },
  ];
}

function dataHome(): string {
  const configured = process.env["XDG_DATA_HOME"] ?? "";
  return isAbsolute(configured) ? configured : join(homedir(), ".local/share");
}

ignoreSignals();
try {
  await ensureUi(repositoryRoot, (line) => console.error(line));
  process.exitCode = await runServices(servicesToStart(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
