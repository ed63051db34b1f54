/** A data frame of a WebSocket connection, RFC 6455, section 5.4. */
export interface FrameOfMessage {
  /** Equal for frames of the same side. */
  readonly direction: number;
  /** Not a continuation. */
  readonly isFirst: boolean;
  readonly isFinal: boolean;
  /** Of first frames; what a continuation is, its first frame says. */
  readonly isText: boolean;
  readonly payload: Buffer;
}

/** A message with the payloads of all its frames. */
export interface JoinedMessage {
  /** Also where the first frame is not among the frames, so that nobody can tell. */
  readonly isText: boolean;
  readonly payload: Buffer;
}

/**
 * Puts messages together from the frames of both sides, the newest first. Frames of a message that are missing leave its
 * parts: each run of frames that belong together is told as a message.
 */
export function* messagesBackwards(frames: Iterable<FrameOfMessage>): Generator<JoinedMessage> {
  // By direction: the frames of a message whose beginning has not been seen yet, the last one first.
  const unfinished = new Map<number, Buffer[]>();
  for (const { direction, isFirst, isFinal, isText, payload } of frames) {
    const later = unfinished.get(direction);
    if (isFinal && later !== undefined) {
      unfinished.delete(direction);
      yield joined(later, true);
    }
    if (isFirst) {
      const rest = isFinal ? undefined : later;
      if (rest === undefined) yield { isText, payload };
      else {
        unfinished.delete(direction);
        rest.push(payload);
        yield joined(rest, isText);
      }
    } else if (isFinal || later === undefined) unfinished.set(direction, [payload]);
    else later.push(payload);
  }
  for (const rest of unfinished.values()) yield joined(rest, true);
}

function joined(lastFirst: readonly Buffer[], isText: boolean): JoinedMessage {
  return { isText, payload: Buffer.concat(lastFirst.toReversed()) };
}
