import type { Socket } from "node:net";

/** Relays the bytes of one socket to the other, and its end or failure. */
export function carry(from: Socket, to: Socket): void {
  from.on("data", (piece: Buffer) => {
    if (!to.write(piece)) from.pause();
  });
  to.on("drain", () => from.resume());
  from.on("end", () => to.end());
  for (const event of ["error", "close"]) from.on(event, () => to.destroy());
}
