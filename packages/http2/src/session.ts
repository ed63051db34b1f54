import { type ByteSocket, LINGER_MS, trackExternalMemory } from "@headworks/sockets";
import {
  ACK,
  COMPRESSION_ERROR,
  CONTINUATION,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  GOAWAY,
  HEADERS,
  Http2Error,
  INTERNAL_ERROR,
  NO_ERROR,
  PING,
  PRIORITY,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  REFUSED_STREAM,
  RST_STREAM,
  SETTINGS,
  STREAM_CLOSED,
  WINDOW_UPDATE,
} from "./codes.ts";
import { sectionProblem } from "./field-rules.ts";
import {
  type BodyLimits,
  CONNECTION_WINDOW_BYTES,
  ConnectionWindow,
  FIRST_WINDOW_BYTES,
  MAX_WINDOW_BYTES,
  PeerSettings,
  ReceiveWindow,
  SETTING,
  WindowShare,
} from "./flow-control.ts";
import { FrameBudget } from "./flood-limits.ts";
import {
  blockOf,
  dependsOnItself,
  FrameParser,
  type FrameSink,
  FrameWriter,
  headersDependOnThemselves,
} from "./frames.ts";
import { HpackDecoder, type SectionLimits } from "./hpack/hpack-decoder.ts";
import { HpackEncoder } from "./hpack/hpack-encoder.ts";
import { HpackError } from "./hpack/huffman.ts";
import { ClosedStreams, Http2Stream, SendScheduler, type StreamCarrier, StreamTable } from "./stream.ts";

export interface SessionOptions {
  readonly role: "client" | "server";
  /** Maximum concurrent streams of the peer; servers only. */
  readonly maxConcurrentStreams?: number;
  readonly section: SectionLimits;
  /** Advertises extended CONNECT (RFC 8441, 3); servers only. */
  readonly acceptsWebSockets?: boolean;
  /** Limits on body bytes in flight or unread. */
  readonly bodies?: BodyLimits;
}

/** Callbacks of a connection, called synchronously while it reads. */
export interface SessionEvents {
  /** A client opened a stream; set its handler now. `isWhole`: nothing follows the section. */
  onStream?(stream: Http2Stream, section: string[], isWhole: boolean): void;
  /**
   * Like `onStream`, for a section over the limits, truncated to them. The request must be refused; without this
   * callback the stream is reset.
   */
  onOverlongStream?(stream: Http2Stream, section: string[], isWhole: boolean): void;
  onSettings?(): void;
  /** The peer accepts no new streams (RFC 9113, 6.8). */
  onGoaway?(code: number): void;
  /** The peer closed its side of the socket. */
  onPeerEnd?(): void;
  /** A callback threw, which ended the connection; without this callback only `onClose` reports it. */
  onDefect?(error: Error): void;
  /** The connection and all its streams are closed; `error` is the cause, if any. */
  onClose(error: Error | undefined): void;
}

const PING_BYTES = 8;

/** Outstanding PINGs. Acknowledgements are matched in order, as all implementations send them. */
class Pings {
  readonly #waiting: ((isAcknowledged: boolean) => void)[] = [];
  #acknowledged = 0;

  /** Adds a PING; returns its payload. */
  add(acknowledged: (isAcknowledged: boolean) => void): Buffer {
    this.#waiting.push(acknowledged);
    return payloadOf(this.#acknowledged + this.#waiting.length - 1);
  }

  /** Handles an acknowledgement. False: unsolicited, which is harmless (RFC 9113, 6.7). */
  response(content: Buffer): boolean {
    const acknowledged = this.#waiting[0];
    if (acknowledged === undefined || !content.equals(payloadOf(this.#acknowledged))) return false;
    this.#waiting.shift();
    this.#acknowledged += 1;
    acknowledged(true);
    return true;
  }

  /** No more acknowledgements will arrive. */
  end(): void {
    for (const acknowledged of this.#waiting.splice(0)) acknowledged(false);
  }
}

/** More CONTINUATION frames than this have no legitimate use. */
const MAX_FRAMES = 64;

/** Assembles field blocks (RFC 9113, 4.3) and decodes them. */
class SectionReader {
  readonly #limits: SectionLimits;
  readonly #decoder = new HpackDecoder();
  /** The block in progress. */
  #stream = 0;
  #isWhole = false;
  #isSelfDependent = false;
  #parts: Buffer[] = [];
  #sizeBytes = 0;

  constructor(limits: SectionLimits) {
    this.#limits = limits;
  }

  /** A block is in progress: only its CONTINUATION frames are allowed. */
  get isInBlock(): boolean {
    return this.#stream !== 0;
  }

  /** Adds a frame; returns the section when it is complete. Throws Http2Error. */
  read(
    type: typeof HEADERS | typeof CONTINUATION,
    flags: number,
    stream: number,
    content: Buffer,
  ): ReceivedSection | undefined {
    if (stream === 0) throw new Http2Error(PROTOCOL_ERROR, "Fields belong to no stream");
    if (type === CONTINUATION ? stream !== this.#stream : this.isInBlock) {
      throw new Http2Error(PROTOCOL_ERROR, "Frames of a field block are mixed with others");
    }
    const block = blockOf(type, flags, content);
    if (type === HEADERS) {
      this.#isWhole = (flags & END_STREAM) !== 0;
      this.#isSelfDependent = headersDependOnThemselves(flags, stream, content);
    }
    if ((flags & END_HEADERS) === 0) {
      this.#keep(stream, block);
      return undefined;
    }
    if (!this.isInBlock) return this.#decode(stream, block);
    const whole = Buffer.concat([...this.#parts, block]);
    this.#stream = 0;
    this.#parts = [];
    this.#sizeBytes = 0;
    return this.#decode(stream, whole);
  }

  #keep(stream: number, block: Buffer): void {
    this.#stream = stream;
    this.#parts.push(Buffer.from(block));
    this.#sizeBytes += block.length;
    // A section within the limits cannot need more, as literals are smaller than their fields.
    if (this.#parts.length > MAX_FRAMES || this.#sizeBytes > this.#limits.listBytes * 2) {
      throw new Http2Error(ENHANCE_YOUR_CALM, "A field block without an end");
    }
  }

  #decode(stream: number, block: Buffer): ReceivedSection {
    const fields: string[] = [];
    try {
      const isTruncated = !this.#decoder.decode(block, fields, this.#limits);
      return { stream, isWhole: this.#isWhole, fields, isTruncated, isSelfDependent: this.#isSelfDependent };
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      throw new Http2Error(COMPRESSION_ERROR, error.message);
    }
  }
}

/** Receives DATA frames (RFC 9113, 6.1): accounts for windows and passes content to streams. */
class DataReceiver {
  readonly #out: FrameWriter;
  readonly #budget: FrameBudget;
  readonly #isServer: boolean;
  readonly #window = new ConnectionWindow();
  /** The current frame's stream, its END_STREAM flag and its remaining padding. */
  #stream: Http2Stream | undefined;
  #isLast = false;
  #restBytes = 0;

  constructor(out: FrameWriter, budget: FrameBudget, isServer: boolean) {
    this.#out = out;
    this.#budget = budget;
    this.#isServer = isServer;
  }

  /** A frame begins; `stream` is undefined if closed. Throws Http2Error if the window is exceeded. */
  begin(stream: Http2Stream | undefined, flags: number, sizeBytes: number): void {
    const byBytes = this.#window.receive(sizeBytes);
    if (byBytes > 0) this.#out.widen(0, byBytes);
    if (stream?.hasReceivedEnd === true) stream.fail(STREAM_CLOSED, "DATA behind its end");
    const isLast = (flags & END_STREAM) !== 0;
    // DATA for a closed stream makes no progress, but its peer may not know yet.
    if (sizeBytes === 0 && (!isLast || stream === undefined)) this.#budget.spend(1, "empty DATA");
    else if (stream !== undefined) this.#budget.earn(1);
    const isTaken = stream !== undefined && !stream.hasReceivedEnd && stream.receiveFrame(sizeBytes);
    this.#stream = isTaken ? stream : undefined;
    this.#isLast = isLast;
    this.#restBytes = sizeBytes;
  }

  piece(piece: Buffer): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    this.#restBytes -= piece.length;
    if (!this.#isServer && !stream.hasHead) return stream.fail(PROTOCOL_ERROR, "DATA before a final response");
    stream.receivePiece(piece);
  }

  end(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    if (stream === undefined) return;
    if (this.#restBytes > 0) stream.consume(this.#restBytes);
    if (!this.#isLast) return;
    if (!this.#isServer && !stream.hasHead) stream.fail(PROTOCOL_ERROR, "DATA before a final response");
    else stream.receiveEnd(undefined);
  }
}

/** Time for a misbehaving peer to read the GOAWAY. */
const GOAWAY_LINGER_MS = 500;

/** Cost of a stream error in frames of the budget. */
const FAULT_FRAMES = 50;
const MAX_STREAM_ID = 2 ** 31 - 1;

/** Reading pauses while this much output is unread: responses to PING and heads are not limited by windows. */
const MAX_UNREAD_BYTES = 1_048_576;

/** An HTTP/2 connection (RFC 9113), client or server. Frames of one turn leave in one write. */
export class Http2Session implements FrameSink, StreamCarrier {
  readonly peer: PeerSettings;
  readonly #socket: ByteSocket;
  readonly #options: SessionOptions;
  readonly #events: SessionEvents;
  readonly #isServer: boolean;
  readonly #parser: FrameParser;
  readonly #sections: SectionReader;
  readonly #encoder = new HpackEncoder();
  readonly #out: FrameWriter;
  readonly #sendScheduler: SendScheduler;
  readonly #budget = new FrameBudget();
  readonly #share: WindowShare;
  readonly #streams = new StreamTable();
  readonly #closed = new ClosedStreams();
  readonly #pings = new Pings();
  readonly #data: DataReceiver;
  #hasSettings = false;
  #unackedSettings = 1;
  /** Highest stream id seen from the peer; next id of ours. */
  #lastPeerStream = 0;
  /** Highest processed stream id, for GOAWAY; streams after a GOAWAY are not included (RFC 9113, 6.8). */
  #lastProcessed = 0;
  #nextStream = 1;
  #isPeerLeaving = false;
  #isClosing = false;
  #isFinished = false;
  #isClosed = false;
  #error: Error | undefined;

  constructor(socket: ByteSocket, options: SessionOptions, events: SessionEvents) {
    this.#socket = socket;
    this.#options = options;
    this.#events = events;
    this.#isServer = options.role === "server";
    this.peer = new PeerSettings(!this.#isServer);
    this.#parser = new FrameParser(this, this.#isServer);
    this.#sections = new SectionReader(options.section);
    this.#share = new WindowShare(options.bodies);
    this.#out = new FrameWriter(socket);
    this.#sendScheduler = new SendScheduler(this.#out, this.#budget);
    this.#data = new DataReceiver(this.#out, this.#budget, this.#isServer);
    connectionPreface(this.#out, options);
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("drain", this.#onDrain);
    socket.on("error", this.#onError);
    socket.once("close", this.#onClose);
    socket.resume();
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** SETTINGS were received, which proves that the peer speaks HTTP/2. */
  get hasSettings(): boolean {
    return this.#hasSettings;
  }

  /** The cause of the end, if it was an error. */
  get error(): Error | undefined {
    return this.#error;
  }

  /** Whether the peer accepts new streams, as far as known. */
  get acceptsStreams(): boolean {
    return !this.#isFinished && !this.#isClosing && !this.#isPeerLeaving && this.#nextStream <= MAX_STREAM_ID;
  }

  /** Opens a stream if possible. No callback occurs before the caller has set its handler. */
  request(section: readonly string[], isWhole: boolean): Http2Stream {
    const stream = this.#newStream(this.#nextStream);
    this.#nextStream += 2;
    stream.sendSection(section, isWhole);
    return stream;
  }

  /** Sends a PING; `acknowledged` is called once. */
  ping(acknowledged: (isAcknowledged: boolean) => void): void {
    if (this.#isFinished) return acknowledged(false);
    this.#out.ping(this.#pings.add(acknowledged), false);
  }

  /** Sends the first GOAWAY; streams that the peer opens before it receives it are still accepted (RFC 9113, 6.8). */
  warn(): void {
    if (!this.#isFinished && !this.#isClosing) this.#out.goaway(MAX_STREAM_ID, NO_ERROR);
  }

  /** Accepts no more streams and ends after the existing ones. */
  close(): void {
    if (this.#isFinished || this.#isClosing) return;
    this.#isClosing = true;
    this.#out.goaway(this.#lastProcessed, NO_ERROR);
    if (this.#streams.size === 0) this.#finish();
  }

  /** Ends at once; a code other than NO_ERROR is sent in GOAWAY. */
  destroy(code: number = NO_ERROR, error?: Error): void {
    if (this.#isFinished) return;
    this.#error ??= error;
    this.#out.goaway(this.#lastProcessed, code);
    this.#end();
    if (code === NO_ERROR || this.#socket.destroyed) this.#socket.destroy();
    else endAfterGoaway(this.#socket);
  }

  pump(stream: Http2Stream): void {
    if (!this.#isFinished) this.#sendScheduler.pump(stream);
  }

  sendBlock(stream: Http2Stream, section: readonly string[], isEnd: boolean): void {
    if (!this.#isFinished) this.#out.block(stream.id, this.#encoder.encode(section), isEnd);
  }

  sendEnd(stream: Http2Stream): void {
    if (!this.#isFinished) this.#sendScheduler.end(stream);
  }

  sendReset(stream: Http2Stream, code: number): void {
    if (!this.#isFinished) this.#out.reset(stream.id, code);
  }

  widen(stream: Http2Stream, byBytes: number): void {
    if (!this.#isFinished) this.#out.widen(stream.id, byBytes);
  }

  detach(stream: Http2Stream): void {
    this.#streams.remove(stream);
    this.#closed.note(stream.id, stream.wasReset ? "reset" : stream.hasReceivedEnd ? "ended" : "left");
    this.#sendScheduler.detach(stream);
    if (this.#isClosing && this.#streams.size === 0) this.#finish();
  }

  onDataFrame(id: number, flags: number, sizeBytes: number): void {
    if (this.#sections.isInBlock) throw new Http2Error(PROTOCOL_ERROR, "DATA in the middle of a field block");
    const stream = this.#known(id, "DATA");
    this.#data.begin(stream, flags, sizeBytes);
    if (stream === undefined) this.#onFrameAfterEnd(id, "DATA");
  }

  onDataPiece(piece: Buffer): void {
    this.#data.piece(piece);
  }

  onDataFrameEnd(): void {
    this.#data.end();
  }

  onFrame(type: number, flags: number, id: number, content: Buffer): void {
    if (type === HEADERS || type === CONTINUATION) {
      const section = this.#sections.read(type, flags, id, content);
      if (section !== undefined) this.#onSection(section);
      return;
    }
    if (this.#sections.isInBlock) throw new Http2Error(PROTOCOL_ERROR, "Another frame in the middle of a field block");
    switch (type) {
      case PRIORITY:
        return this.#onPriority(id, content);
      case RST_STREAM:
        return this.#onReset(id, content);
      case SETTINGS:
        return this.#onSettings(flags, id, content);
      case PUSH_PROMISE:
        throw new Http2Error(PROTOCOL_ERROR, "PUSH_PROMISE, which was not allowed");
      case PING:
        return this.#onPing(flags, id, content);
      case GOAWAY:
        return this.#onGoaway(id, content);
      case WINDOW_UPDATE:
        return this.#onWindowUpdate(id, content);
      default:
        this.#budget.spend(1, `of type ${type}`);
    }
  }

  #newStream(id: number): Http2Stream {
    const stream = new Http2Stream(id, this, this.peer.firstWindowBytes, new ReceiveWindow(this.#share));
    // Undelivered requests of a disconnected client are dropped; responses of a disconnected server are still
    // delivered.
    stream.dropsUndelivered = this.#isServer;
    this.#streams.add(stream);
    return stream;
  }

  /** The stream of a frame; undefined if it is closed. */
  #known(id: number, what: string): Http2Stream | undefined {
    const stream = this.#streams.get(id);
    if (stream === undefined && this.#isIdle(id)) {
      throw new Http2Error(PROTOCOL_ERROR, `${what} of a stream that never was`);
    }
    return stream;
  }

  #isIdle(id: number): boolean {
    const isClients = id % 2 === 1;
    if (!isClients || id === 0) return true;
    return this.#isServer ? id > this.#lastPeerStream : id >= this.#nextStream;
  }

  /**
   * A frame for a closed stream. Where RFC 9113, 5.1 is silent, RFC 7540, 5.1 applies: after the peer's END_STREAM a
   * connection error, after the peer's reset a stream error, after our end ignored, since the peer may not have known.
   */
  #onFrameAfterEnd(id: number, what: string): void {
    if (this.#closed.wasSkipped(id)) throw new Http2Error(PROTOCOL_ERROR, `${what} of a stream number below the last`);
    switch (this.#closed.endingOf(id)) {
      case "ended":
        throw new Http2Error(STREAM_CLOSED, `${what} behind the end of a stream`);
      case "reset":
        this.#budget.spend(1, `${what} behind a reset`);
        return this.#out.reset(id, STREAM_CLOSED);
      default:
        this.#budget.spend(1, `${what} of a stream that is over`);
    }
  }

  #onPriority(id: number, content: Buffer): void {
    this.#budget.spend(1, "PRIORITY");
    if (id === 0) throw new Http2Error(PROTOCOL_ERROR, "PRIORITY of the connection");
    const isTruncated = content.length !== 5;
    if (!isTruncated && !dependsOnItself(id, content)) return;
    const [code, problem] = isTruncated
      ? [FRAME_SIZE_ERROR, `PRIORITY of ${content.length} bytes`]
      : [PROTOCOL_ERROR, "PRIORITY by which it depends on itself"];
    // An idle stream cannot be reset (RFC 9113, 6.4).
    if (this.#isIdle(id)) throw new Http2Error(code, problem);
    this.#streams.get(id)?.fail(code, problem);
  }

  #onSection(section: ReceivedSection): void {
    const stream = this.#streams.get(section.stream);
    if (stream !== undefined) return this.#onNextSection(stream, section);
    const isNew = this.#isServer && section.stream % 2 === 1 && section.stream > this.#lastPeerStream;
    if (!isNew) {
      this.#known(section.stream, "HEADERS");
      return this.#onFrameAfterEnd(section.stream, "HEADERS");
    }
    this.#closed.opened(section.stream, this.#lastPeerStream);
    this.#lastPeerStream = section.stream;
    if (this.#isClosing) return;
    this.#lastProcessed = section.stream;
    this.#open(section);
  }

  #open({ stream: id, fields, isWhole, isTruncated, isSelfDependent }: ReceivedSection): void {
    if (this.#streams.size >= (this.#options.maxConcurrentStreams ?? Number.POSITIVE_INFINITY)) {
      return this.#refuse(id, REFUSED_STREAM, "of a stream too many");
    }
    if (isSelfDependent) return this.#refuse(id, PROTOCOL_ERROR, "of a stream that depends on itself");
    if (isTruncated) {
      const isUnwanted = this.#events.onOverlongStream === undefined;
      if (isUnwanted) return this.#refuse(id, ENHANCE_YOUR_CALM, "with too many fields");
      this.#budget.spend(FAULT_FRAMES, "HEADERS with too many fields");
    }
    const stream = this.#newStream(id);
    if (isTruncated) this.#events.onOverlongStream?.(stream, fields, isWhole);
    else this.#events.onStream?.(stream, fields, isWhole);
    if (isWhole) stream.endedWithSection();
  }

  /** Resets a stream not yet announced to the owner. */
  #refuse(id: number, code: number, what: string): void {
    this.#budget.spend(FAULT_FRAMES, `HEADERS ${what}`);
    this.#closed.note(id, "left");
    this.#out.reset(id, code);
  }

  #onNextSection(stream: Http2Stream, section: ReceivedSection): void {
    const { fields, isWhole } = section;
    if (stream.hasReceivedEnd) {
      this.#budget.spend(FAULT_FRAMES, "HEADERS behind the end of a stream");
      return stream.fail(STREAM_CLOSED, "HEADERS behind its end");
    }
    const isTrailer = this.#isServer || stream.hasHead;
    const problem = nextSectionProblem(section, stream, isTrailer, !this.#isServer);
    if (problem !== undefined) {
      this.#budget.spend(FAULT_FRAMES, "HEADERS with fields that are not valid");
      return stream.fail(PROTOCOL_ERROR, problem);
    }
    if (isTrailer) return stream.receiveEnd(fields);
    const isInterim = fields[0] === ":status" && fields[1]?.length === 3 && fields[1].startsWith("1");
    if (isInterim && isWhole) return stream.fail(PROTOCOL_ERROR, "an informational response that ends it");
    stream.hasHead = !isInterim;
    stream.handler?.onSection(fields, isWhole);
    if (isWhole) stream.endedWithSection();
  }

  #onReset(id: number, content: Buffer): void {
    const stream = this.#known(id, "RST_STREAM");
    expectSize(content, 4, "RST_STREAM");
    if (stream === undefined) this.#budget.spend(1, "RST_STREAM");
    stream?.receiveReset(content.readUInt32BE(0));
  }

  #onSettings(flags: number, id: number, content: Buffer): void {
    if (id !== 0) throw new Http2Error(PROTOCOL_ERROR, "SETTINGS of a stream");
    if ((flags & ACK) !== 0) {
      expectSize(content, 0, "SETTINGS");
      if (this.#unackedSettings === 0) throw new Http2Error(PROTOCOL_ERROR, "Unexpected SETTINGS acknowledgement");
      this.#unackedSettings -= 1;
      return;
    }
    this.#budget.spend(1, "SETTINGS");
    const before = this.peer.firstWindowBytes;
    this.peer.read(content);
    this.#encoder.limitTable(this.peer.headerTableBytes);
    // Acknowledged first: until then the peer may apply the old settings (RFC 9113, 6.5.3).
    this.#out.acknowledgeSettings();
    const byBytes = this.peer.firstWindowBytes - before;
    if (byBytes !== 0) this.#shiftWindows(byBytes);
    this.#hasSettings = true;
    this.#events.onSettings?.();
  }

  /** A new initial window also adjusts existing streams (RFC 9113, 6.9.2). */
  #shiftWindows(byBytes: number): void {
    for (const stream of this.#streams.all()) {
      if (!stream.widened(byBytes)) throw new Http2Error(FLOW_CONTROL_ERROR, "A window is too large");
    }
  }

  #onPing(flags: number, id: number, content: Buffer): void {
    if (id !== 0) throw new Http2Error(PROTOCOL_ERROR, "PING of a stream");
    expectSize(content, PING_BYTES, "PING");
    if ((flags & ACK) === 0) {
      this.#budget.spend(1, "PING");
      return this.#out.ping(content, true);
    }
    if (!this.#pings.response(content)) this.#budget.spend(1, "unexpected PING acknowledgement");
  }

  #onGoaway(id: number, content: Buffer): void {
    if (id !== 0) throw new Http2Error(PROTOCOL_ERROR, "GOAWAY of a stream");
    if (content.length < 8) throw new Http2Error(FRAME_SIZE_ERROR, "GOAWAY is cut off");
    this.#budget.spend(1, "GOAWAY");
    const last = content.readUInt32BE(0) & MAX_STREAM_ID;
    this.#isPeerLeaving = true;
    this.#events.onGoaway?.(content.readUInt32BE(4));
    if (this.#isServer) return;
    // The server did not process these, and they may be resent elsewhere (RFC 9113, 6.8).
    for (const stream of this.#streams.all()) if (stream.id > last) stream.lost(REFUSED_STREAM);
  }

  #onWindowUpdate(id: number, content: Buffer): void {
    expectSize(content, 4, "WINDOW_UPDATE");
    this.#budget.spend(1, "WINDOW_UPDATE");
    const byBytes = content.readUInt32BE(0) & MAX_WINDOW_BYTES;
    const stream = id === 0 ? undefined : this.#known(id, "WINDOW_UPDATE");
    if (id !== 0) {
      if (byBytes === 0) stream?.fail(PROTOCOL_ERROR, "WINDOW_UPDATE by nothing");
      else if (stream?.widened(byBytes) === false) stream.fail(FLOW_CONTROL_ERROR, "a window that is too large");
      return;
    }
    if (byBytes === 0) throw new Http2Error(PROTOCOL_ERROR, "WINDOW_UPDATE by nothing");
    if (!this.#sendScheduler.widen(byBytes)) throw new Http2Error(FLOW_CONTROL_ERROR, "A window is too large");
  }

  readonly #onData = (chunk: Buffer): void => {
    trackExternalMemory(chunk.length);
    if (this.#isFinished) return;
    try {
      this.#parser.read(chunk);
    } catch (error) {
      const cause = error instanceof Error ? error : new Error(String(error));
      this.destroy(error instanceof Http2Error ? error.http2Code : INTERNAL_ERROR, cause);
      if (!(error instanceof Http2Error)) this.#events.onDefect?.(cause);
    }
    if (this.#socket.writableLength > MAX_UNREAD_BYTES && !this.#isFinished) this.#socket.pause();
  };

  readonly #onEnd = (): void => {
    this.#events.onPeerEnd?.();
    // No response can arrive any more.
    if (!this.#isServer) this.destroy();
  };

  readonly #onDrain = (): void => {
    this.#socket.resume();
    this.#sendScheduler.pumpAll();
  };

  readonly #onError = (error: Error): void => {
    if (!this.#isFinished) this.#error ??= error;
  };

  readonly #onClose = (): void => {
    this.#end();
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#events.onClose(this.#error);
  };

  /** Reading stops, and only buffered output is still written. */
  #end(): void {
    if (this.#isFinished) return;
    this.#out.flush();
    this.#isFinished = true;
    for (const stream of this.#streams.all()) stream.lost(NO_ERROR);
    this.#pings.end();
  }

  #finish(): void {
    if (this.#isFinished) return;
    this.#end();
    if (this.#isServer) endAfterResponses(this.#socket);
    else this.#socket.destroySoon();
  }
}

function expectSize(content: Buffer, sizeBytes: number, what: string): void {
  if (content.length !== sizeBytes) throw new Http2Error(FRAME_SIZE_ERROR, `${what} of ${content.length} bytes`);
}

/** The problem with a section that is not a request head; undefined if valid. */
function nextSectionProblem(
  { fields, isWhole, isTruncated, isSelfDependent }: ReceivedSection,
  { carriesTunnel }: Http2Stream,
  isTrailer: boolean,
  isOfServer: boolean,
): string | undefined {
  if (carriesTunnel && isTrailer) return "HEADERS in a tunnel";
  if (isSelfDependent) return "HEADERS by which it depends on itself";
  if (isTruncated) return "more fields than the limits allow";
  if (isTrailer && !isWhole) return "trailers that do not end it";
  return sectionProblem(fields, isTrailer, isOfServer);
}

/** Lingering close: later input, such as WINDOW_UPDATE, would cause a reset that discards responses. */
function endAfterResponses(socket: ByteSocket): void {
  socket.end(() => {
    if (!socket.destroyed) destroyAfter(LINGER_MS, socket);
  });
  socket.resume();
}

/** Closes after a connection error. An immediate reset would discard the GOAWAY while the peer is still sending. */
function endAfterGoaway(socket: ByteSocket): void {
  destroyAfter(GOAWAY_LINGER_MS, socket);
  socket.end();
  socket.resume();
}

function destroyAfter(ms: number, socket: ByteSocket): void {
  const timer = setTimeout(() => socket.destroy(), ms);
  socket.once("close", () => clearTimeout(timer));
}

interface ReceivedSection {
  readonly stream: number;
  readonly isWhole: boolean;
  readonly fields: string[];
  /** It exceeded the limits and is truncated. */
  readonly isTruncated: boolean;
  /** The stream depends on itself, a stream error (RFC 7540, 5.3.1). */
  readonly isSelfDependent: boolean;
}

/** The connection preface of either side (RFC 9113, 3.4). */
function connectionPreface(out: FrameWriter, options: SessionOptions): void {
  const { role, maxConcurrentStreams, section, acceptsWebSockets = false } = options;
  const said: [number, number][] = [[SETTING.headerListBytes, section.listBytes]];
  if (role === "client") {
    out.preface();
    said.push([SETTING.enablePush, 0]);
  }
  if (maxConcurrentStreams !== undefined) said.push([SETTING.maxConcurrentStreams, maxConcurrentStreams]);
  if (acceptsWebSockets) said.push([SETTING.enableConnectProtocol, 1]);
  out.settings(said);
  out.widen(0, CONNECTION_WINDOW_BYTES - FIRST_WINDOW_BYTES);
}

function payloadOf(number: number): Buffer {
  const payload = Buffer.alloc(PING_BYTES);
  payload.writeUInt32BE(number >>> 0, PING_BYTES - 4);
  return payload;
}
