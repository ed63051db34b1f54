// Tested by shared-reads.test.ts
import { Socket, type OnReadOpts } from "node:net";

const READ_BYTES = 65_536;
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

/** A socket on its way from one owner to another; no declaration of node's knows of it. */
interface WithHandle {
  _handle?: object | null;
}

/**
 * The option `onread` of a socket that reads into one buffer with all others: what `receive` gets is overwritten by the next
 * read, of whichever socket. Its "data" event is never emitted. A buffer of its own for each read costs about a microsecond
 * more, of the twenty or so that a small exchange takes.
 */
export function sharedReads(receive: (bytes: Buffer) => void): OnReadOpts {
  return {
    buffer: readBuffer,
    callback: (sizeBytes) => {
      receive(readBuffer.subarray(0, sizeBytes));
      return true;
    },
  };
}

/**
 * The connection of a socket that a server accepted, as a socket with {@link sharedReads}, which servers cannot be asked for.
 * `accepted` is spent: it emits nothing any more, and its server does not count it. The new one reads at once, is half-open as
 * long as it likes, and keeps what the system was told of the connection. Undefined where bytes wait in `accepted`, and where the
 * runtime does not let go of the connection: then `accepted` is as it was.
 */
export function acceptedWithSharedReads(accepted: Socket, receive: (bytes: Buffer) => void): Socket | undefined {
  const old = accepted as WithHandle;
  const handle = old._handle;
  if (accepted.destroyed || accepted.readableLength > 0) return undefined;
  if (handle === null || handle === undefined || !("useUserBuffer" in handle)) return undefined;
  accepted.removeAllListeners();
  old._handle = null;
  accepted.destroy();
  const options: object = { handle, allowHalfOpen: true, onread: sharedReads(receive) };
  return new Socket(options);
}
