import { connect, createServer } from "node:net";
import { carry } from "../capture/carry.ts";

/**
 * What a gateway costs on these sockets before it does anything: passes bytes on as they come, unread and unchecked, each
 * client over an origin connection of its own. It is a measure of what is within reach.
 *
 * Usage: node bare-relay.ts <port> <origin port>
 */
const [port, originPort] = process.argv.slice(2).map(Number);

createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
  const origin = connect({ host: "127.0.0.1", port: originPort ?? 0, noDelay: true, allowHalfOpen: true });
  carry(client, origin);
  carry(origin, client);
}).listen(port, "127.0.0.1");
