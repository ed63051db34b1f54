import type { Socket } from "node:net";

/** Passes on what comes from one socket to the other, as it comes, and how that ends. */
export function carry(from: Socket, to: Socket): void {
  from.on("data", (piece: Buffer) => {
    if (!to.write(piece)) from.pause();
  });
  to.on("drain", () => from.resume());
  from.on("end", () => to.end());
  for (const event of ["error", "close"]) from.on(event, () => to.destroy());
}
