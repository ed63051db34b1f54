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
export function sharedReads(receive: (bytes: SharedBytes) => void): OnReadOpts {
  return {
    buffer: readBuffer,
    callback: (sizeBytes) => {
      receive(readBuffer.subarray(0, sizeBytes));
      return true;
    },
  };
}

/** The symbols under which a socket with `onread` keeps its buffer and callback. */
const SOCKET_SYMBOLS = Object.getOwnPropertySymbols(new Socket());
const BUFFER = SOCKET_SYMBOLS.find(({ description }) => description === "kBuffer");
const CALLBACK = SOCKET_SYMBOLS.find(({ description }) => description === "kBufferCb");

/** Internal handle, not declared by Node's types. */
interface UserBufferHandle {
  _handle?: { useUserBuffer?(buffer: Buffer): void } | null;
}

/**
 * From now on, the bytes of this socket go to `receive`, its "data" listener, and lie in memory that the next read of
 * any socket overwrites. A paused socket reads up to its high-water mark as usual, into memory of its own. TLS gains
 * more than TCP, since it allocated a buffer per record.
 * Returns a function that ends sharing: later reads are copied and emitted. No effect on sockets without a system
 * handle.
 */
export function shareReadBuffer(socket: Duplex, receive: (bytes: SharedBytes) => void): () => void {
  const handle = (socket as Duplex & UserBufferHandle)._handle;
  if (BUFFER === undefined || CALLBACK === undefined || handle?.useUserBuffer === undefined) return () => undefined;
  let isShared = true;
  const onRead = (sizeBytes: number): boolean => {
    const chunk = readBuffer.subarray(0, sizeBytes);
    // Like `Readable.push`: queued bytes must come first.
    if (socket.readableFlowing !== true || socket.readableLength > 0) return socket.push(SharedBytes.copyAlone(chunk));
    if (isShared) receive(chunk);
    else socket.emit("data", SharedBytes.copyAlone(chunk));
    return true;
  };
  // With `onread`, a paused socket would read nothing and not notice a disconnect.
  const pause = (): Duplex => Duplex.prototype.pause.call(socket);
  Object.assign(socket, { [BUFFER]: readBuffer, [CALLBACK]: onRead, pause });
  handle.useUserBuffer(readBuffer);
  return () => {
    isShared = false;
  };
}

/** Smaller copies get memory of their own: the block they would pin is comparatively large. */
const MIN_SHARED_SLICE_BYTES = 1024;

/**
 * Bytes that are valid only during the call that passes them: the next read overwrites their memory. A Buffer is
 * acceptable where these are; the reverse does not compile, so keeping them takes one of the copies below.
 */
export interface SharedBytes {
  readonly [index: number]: number;
  readonly length: number;
  subarray(start?: number, end?: number): SharedBytes;
  toString(encoding?: BufferEncoding, start?: number, end?: number): string;
  copy(target: Uint8Array, targetStart?: number, start?: number, end?: number): number;
}

/** Copies of bytes that may lie in the shared read buffer; others are returned as they are. */
export const SharedBytes = {
  /** For short-lived data: larger copies share blocks of about 64 KB, which each of them pins. */
  copy(bytes: SharedBytes): Buffer {
    if (isOwned(bytes)) return bytes;
    const isSmall = bytes.length < MIN_SHARED_SLICE_BYTES;
    return copyInto(isSmall ? Buffer.allocUnsafeSlow(bytes.length) : allocSlice(bytes.length), bytes);
  },

  /** For long-lived data: the copy pins no other memory. */
  copyAlone(bytes: SharedBytes): Buffer {
    return isOwned(bytes) ? bytes : copyInto(Buffer.allocUnsafeSlow(bytes.length), bytes);
  },

  /** The bytes of both, in memory of their own. */
  concat(first: SharedBytes, second: SharedBytes): Buffer {
    const joined = Buffer.allocUnsafeSlow(first.length + second.length);
    first.copy(joined);
    second.copy(joined, first.length);
    return joined;
  },
};

function isOwned(bytes: SharedBytes): bytes is Buffer {
  return (bytes as Buffer).buffer !== readBuffer.buffer;
}

function copyInto(memory: Buffer, bytes: SharedBytes): Buffer {
  bytes.copy(memory);
  return memory;
}
