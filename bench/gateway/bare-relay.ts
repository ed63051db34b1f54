import { connect, createServer, type Socket } from "node:net";

/**
 * What a gateway costs on these sockets before it does anything: passes bytes on as they come, unread and unchecked, each
 * client over an origin connection of its own. It is a measure of what is within reach.
 *
 * Usage: node bare-relay.ts <port> <origin port>
 */
const [port, originPort] = process.argv.slice(2).map(Number);

function carry(from: Socket, to: Socket): void {
  from.on("data", (piece: Buffer) => {
    if (!to.write(piece)) from.pause();
  });
  to.on("drain", () => from.resume());
  from.on("end", () => to.end());
  for (const event of ["error", "close"]) from.on(event, () => to.destroy());
}

createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
  const origin = connect({ host: "127.0.0.1", port: originPort ?? 0, noDelay: true, allowHalfOpen: true });
  carry(client, origin);
  carry(origin, client);
}).listen(port, "127.0.0.1");
