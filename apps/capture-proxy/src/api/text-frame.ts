/**
 * Encodes texts as unfragmented, unmasked WebSocket text frames (RFC 6455 section 5.2), one after the other in one
 * buffer. The bytes are the same for every client, so that they are made once and written to each socket as they are.
 */
export function textFrames(texts: readonly string[]): Buffer {
  let sizeBytes = 0;
  const lengths = texts.map((text) => {
    const lengthBytes = Buffer.byteLength(text);
    sizeBytes += headBytes(lengthBytes) + lengthBytes;
    return lengthBytes;
  });
  const frames = Buffer.allocUnsafe(sizeBytes);
  let at = 0;
  for (const [index, text] of texts.entries()) {
    const lengthBytes = lengths[index] ?? 0;
    at = writeHead(frames, at, lengthBytes);
    at += frames.write(text, at, "utf8");
  }
  return frames;
}

const FINAL_TEXT = 0x81;

function headBytes(lengthBytes: number): number {
  return lengthBytes < 126 ? 2 : lengthBytes < 65_536 ? 4 : 10;
}

function writeHead(frames: Buffer, at: number, lengthBytes: number): number {
  frames[at] = FINAL_TEXT;
  if (lengthBytes < 126) {
    frames[at + 1] = lengthBytes;
    return at + 2;
  }
  if (lengthBytes < 65_536) {
    frames[at + 1] = 126;
    frames.writeUInt16BE(lengthBytes, at + 2);
    return at + 4;
  }
  frames[at + 1] = 127;
  frames.writeBigUInt64BE(BigInt(lengthBytes), at + 2);
  return at + 10;
}
