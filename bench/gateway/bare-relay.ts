import { connect, createServer } from "node:net";
import { carry } from "../capture/carry.ts";

/**
 * The cost of these sockets for any gateway: relays bytes unread and unchecked, each
 * client over an origin connection of its own. It is an approximate lower bound.
 *
 * Usage: node bare-relay.ts <port> <origin port>
 */
const [port, originPort] = process.argv.slice(2).map(Number);

createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
  const origin = connect({ host: "127.0.0.1", port: originPort ?? 0, noDelay: true, allowHalfOpen: true });
  carry(client, origin);
  carry(origin, client);
}).listen(port, "127.0.0.1");
