import { Socket, type OnReadOpts } from "node:net";
import { Duplex } from "node:stream";
import { allocSlice } from "./slab.ts";

const READ_BYTES = 65_536;
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

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

/** Where a socket with the option `onread` keeps its buffer and whom it calls. */
const PLACES = Object.getOwnPropertySymbols(new Socket());
const BUFFER = PLACES.find(({ description }) => description === "kBuffer");
const CALLBACK = PLACES.find(({ description }) => description === "kBufferCb");

/** What a socket reads by; no declaration of node's knows of it. */
interface UserBufferHandle {
  _handle?: { useUserBuffer?(buffer: Buffer): void } | null;
}

/**
 * From now on, the "data" of this socket lies in memory that the next read overwrites, of whichever socket: who keeps some
 * of it takes {@link ownBytes} or {@link keptBytes}. That goes for what is handed on at once. While the socket is paused it
 * reads on up to its high-water mark as others do, and that is its own. With TLS this saves more than without: each record
 * was given memory for itself.
 *
 * The function that is returned ends it: what comes then is owned again, at the cost of copying it. Sockets that are no
 * sockets of the system stay as they are.
 */
export function shareReadBuffer(socket: Duplex): () => void {
  const handle = (socket as Duplex & UserBufferHandle)._handle;
  if (BUFFER === undefined || CALLBACK === undefined || handle?.useUserBuffer === undefined) return () => undefined;
  let isShared = true;
  const receive = (sizeBytes: number): boolean => {
    const chunk = readBuffer.subarray(0, sizeBytes);
    // As Readable does with what is pushed: nothing may overtake what waits.
    if (socket.readableFlowing !== true || socket.readableLength > 0) return socket.push(keptBytes(chunk));
    socket.emit("data", isShared ? chunk : keptBytes(chunk));
    return true;
  };
  // With a buffer of its own, a socket that is paused would read nothing at all, not even that the other side is gone.
  const pause = (): Duplex => Duplex.prototype.pause.call(socket);
  Object.assign(socket, { [BUFFER]: readBuffer, [CALLBACK]: receive, pause });
  handle.useUserBuffer(readBuffer);
  return () => {
    isShared = false;
  };
}

/** Smaller copies have memory of their own: next to them, what they would hold on to is much. */
const MIN_SHARED_SLICE_BYTES = 1024;

/**
 * The same bytes in memory that nobody overwrites, a copy only where they were lent; for what is on its way. Larger ones share
 * some 64 KB with others, which all of them hold on to.
 */
export function ownBytes(bytes: Buffer): Buffer {
  if (bytes.buffer !== readBuffer.buffer) return bytes;
  return copyOf(
    bytes,
    bytes.length < MIN_SHARED_SLICE_BYTES ? Buffer.allocUnsafeSlow(bytes.length) : allocSlice(bytes.length),
  );
}

/** The same for what may have to wait for long: it holds on to nothing else. */
export function keptBytes(bytes: Buffer): Buffer {
  return bytes.buffer === readBuffer.buffer ? copyOf(bytes, Buffer.allocUnsafeSlow(bytes.length)) : bytes;
}

function copyOf(bytes: Buffer, memory: Buffer): Buffer {
  bytes.copy(memory);
  return memory;
}
