import type { Command } from "commander";

/** Adds options for the admin API's address and credentials. */
export function adminOptions(command: Command): Command {
  return command
    .option("--admin <url>", "admin API (environment: GATEWAY_ADMIN; http://127.0.0.1:2019)")
    .option("--cert <file>", "certificate of the operator (GATEWAY_ADMIN_CERT)")
    .option("--key <file>", "its key (GATEWAY_ADMIN_KEY)")
    .option("--ca <file>", "CA of the gateway's certificate (GATEWAY_ADMIN_CA)");
}
