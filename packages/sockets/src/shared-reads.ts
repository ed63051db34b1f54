import { Socket, type OnReadOpts } from "node:net";
import { Duplex } from "node:stream";
import { allocSlice } from "./memory.ts";

const READ_BYTES = 65_536;
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * An `onread` option for sockets that share one read buffer: the bytes passed to `receive` are overwritten by the next
 * read of any socket. "data" is never emitted. A buffer per read costs about a microsecond more, of the twenty or so
 * of a small exchange.
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

/** The symbols under which a socket with `onread` keeps its buffer and callback. */
const PLACES = Object.getOwnPropertySymbols(new Socket());
const BUFFER = PLACES.find(({ description }) => description === "kBuffer");
const CALLBACK = PLACES.find(({ description }) => description === "kBufferCb");

/** Internal handle, not declared by Node's types. */
interface UserBufferHandle {
  _handle?: { useUserBuffer?(buffer: Buffer): void } | null;
}

/**
 * From now on, "data" of this socket lies in memory that is overwritten by the next read of any socket: to keep bytes,
 * call {@link ownBytes} or {@link keptBytes}. A paused socket reads up to its high-water mark as usual, into memory of
 * its own. TLS gains more than TCP, since it allocated a buffer per record.
 * Returns a function that ends sharing; later reads are copied. No effect on sockets without a system handle.
 */
export function shareReadBuffer(socket: Duplex): () => void {
  const handle = (socket as Duplex & UserBufferHandle)._handle;
  if (BUFFER === undefined || CALLBACK === undefined || handle?.useUserBuffer === undefined) return () => undefined;
  let isShared = true;
  const receive = (sizeBytes: number): boolean => {
    const chunk = readBuffer.subarray(0, sizeBytes);
    // Like `Readable.push`: queued bytes must come first.
    if (socket.readableFlowing !== true || socket.readableLength > 0) return socket.push(keptBytes(chunk));
    socket.emit("data", isShared ? chunk : keptBytes(chunk));
    return true;
  };
  // With `onread`, a paused socket would read nothing and not notice a disconnect.
  const pause = (): Duplex => Duplex.prototype.pause.call(socket);
  Object.assign(socket, { [BUFFER]: readBuffer, [CALLBACK]: receive, pause });
  handle.useUserBuffer(readBuffer);
  return () => {
    isShared = false;
  };
}

/** Smaller copies get memory of their own: the block they would pin is comparatively large. */
const MIN_SHARED_SLICE_BYTES = 1024;

/**
 * Returns bytes that are safe to keep, copied only if they lie in the shared buffer; for short-lived data. Larger
 * copies share blocks of about 64 KB, which each of them pins.
 */
export function ownBytes(bytes: Buffer): Buffer {
  if (bytes.buffer !== readBuffer.buffer) return bytes;
  return copyOf(
    bytes,
    bytes.length < MIN_SHARED_SLICE_BYTES ? Buffer.allocUnsafeSlow(bytes.length) : allocSlice(bytes.length),
  );
}

/** The same for long-lived data: the copy pins no other memory. */
export function keptBytes(bytes: Buffer): Buffer {
  return bytes.buffer === readBuffer.buffer ? copyOf(bytes, Buffer.allocUnsafeSlow(bytes.length)) : bytes;
}

function copyOf(bytes: Buffer, memory: Buffer): Buffer {
  bytes.copy(memory);
  return memory;
}
