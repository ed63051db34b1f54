import { randomBytes } from "node:crypto";
import { fieldValues } from "@headworks/http1";
import {
  closePayload,
  frameBytes,
  FrameReader,
  type FrameReaderOptions,
  isControl,
  MessageInflater,
  MessageReader,
  OPCODES,
  readDeflate,
  type ReadFrame,
  type ReadMessage,
  type WireFrame,
} from "@headworks/websocket";
import type { Exchange } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type {
  MessageControl,
  MessageDirection,
  MessageHandler,
  MessageVerdict,
  TappedFrame,
} from "#exchange/messages.ts";
import type { ProxyServices } from "./proxy-services.ts";
import type { DirectionTap, MessageTap, OpenTap, TapOutlet } from "./relay.ts";

/** Bytes buffered behind a pending message before reading stops. */
const BACKLOG_BYTES = 65_536;
/** Allowance for the frame headers of a buffered message. */
const FRAMING_BYTES = 65_536;

/** How to read one direction. */
interface DirectionTerms {
  readonly inflater: MessageInflater | undefined;
  /** Context takeover: compressed messages refer to earlier ones, so dropping one requires rewriting later ones. */
  readonly takesOver: boolean;
  /** Messages can be decoded, so they may be replaced or dropped. */
  readonly mayChange: boolean;
  readonly allowedReserved: number;
  /** Recorded bytes per message. */
  readonly keptBytes: number;
}

/** A buffered message and its record. */
interface Held {
  readonly wire: Buffer[];
  readonly frames: TappedFrame[];
}

/**
 * One direction of a WebSocket connection. While no slice gates messages, bytes are forwarded unchanged before they
 * are parsed. Otherwise whole messages are buffered, then forwarded unchanged, replaced or dropped.
 */
class WebSocketDirection implements DirectionTap {
  /** The sender sent a close frame. */
  hasClosed = false;
  readonly #direction: MessageDirection;
  readonly #terms: DirectionTerms;
  readonly #handler: MessageHandler;
  readonly #outlet: TapOutlet;
  readonly #onClose: () => void;
  readonly #reader: FrameReader;
  readonly #joiner: MessageReader;
  #isBroken = false;
  /** Everything further is discarded. */
  #isDiscarding = false;
  /** Messages are buffered until complete and decided. */
  #isGating = false;
  /** The message whose decision is pending. */
  #undecided: { readonly held: Held; readonly message: ReadMessage } | undefined;
  /** A compressed message was changed or dropped: later ones are sent uncompressed. */
  #mustRewrite = false;
  /** Bytes of the frame being read. */
  #frameWire: Buffer[] = [];
  #held: Held = { wire: [], frames: [] };
  #heldBytes = 0;
  #backlog: Buffer[] = [];
  #backlogBytes = 0;
  #injections: { readonly opcode: number; readonly payload: Buffer }[] = [];
  #whenDone: (() => void) | undefined;

  /** @param onClose  called with the sender's first close frame */
  constructor(
    direction: MessageDirection,
    terms: DirectionTerms,
    handler: MessageHandler,
    outlet: TapOutlet,
    onClose: () => void,
  ) {
    this.#direction = direction;
    this.#terms = terms;
    this.#handler = handler;
    this.#outlet = outlet;
    this.#onClose = onClose;
    const options: FrameReaderOptions = {
      isMasked: direction === "send",
      allowedReserved: terms.allowedReserved,
      keptBytes: terms.keptBytes,
    };
    this.#reader = new FrameReader(options);
    this.#joiner = new MessageReader(terms);
  }

  get isHolding(): boolean {
    return this.#backlogBytes >= BACKLOG_BYTES;
  }

  get isDeciding(): boolean {
    return this.#isWaiting;
  }

  get #isWaiting(): boolean {
    return this.#undecided !== undefined;
  }

  push(piece: Buffer): void {
    if (!this.#isWaiting) return this.#take(piece);
    this.#backlog.push(piece);
    this.#backlogBytes += piece.length;
  }

  end(done: () => void): void {
    this.#whenDone = done;
    if (!this.#isWaiting) this.#finish();
  }

  /** Queues an injected message until no other one is in progress. False: the direction is closed or unreadable. */
  inject(opcode: number, payload: Buffer): boolean {
    if (this.#isBroken || this.#isDiscarding || this.hasClosed) return false;
    this.#injections.push({ opcode, payload });
    if (this.#isGating || this.#isBetweenMessages) this.#sendInjections();
    return true;
  }

  /** Sends a close frame to the receiver; further input from the sender is discarded. */
  close(payload: Buffer): void {
    this.inject(OPCODES.close, payload);
    this.#isDiscarding = true;
    const undecided = this.#undecided;
    if (undecided === undefined) return;
    // The pending decision no longer matters.
    this.#undecided = undefined;
    this.#leaveOut(undecided.held, undecided.message);
    this.#workOff();
  }

  get #isBetweenMessages(): boolean {
    return this.#reader.isBetweenFrames && this.#joiner.isBetweenMessages;
  }

  #take(piece: Buffer): void {
    if (this.#isBroken) return this.#pass(piece);
    const isWatchful = this.#isGating || this.#mustRewrite || this.#isDiscarding || this.#injections.length > 0;
    if (isWatchful || this.#gates()) return this.#takeWatchfully(piece);
    this.#outlet.send(piece);
    let at = 0;
    while (at < piece.length && !this.#isBroken) {
      at = this.#reader.read(piece, at);
      const read = this.#readFrame();
      if (read !== undefined) this.#record(this.#tapped(read.frame, read.read));
    }
  }

  /** The frame that the reader just completed; undefined if there is none or the protocol was violated. */
  #readFrame(): { readonly frame: WireFrame; readonly read: ReadFrame } | undefined {
    const { frame } = this.#reader;
    const read = frame === undefined ? undefined : this.#joiner.take(frame);
    const violation = this.#reader.violation ?? this.#joiner.violation;
    if (violation !== undefined) {
      this.#isBroken = true;
      this.#handler.broken(this.#direction, `${violation.message} (${violation.section})`);
      return undefined;
    }
    return frame === undefined || read === undefined ? undefined : { frame, read };
  }

  #takeWatchfully(piece: Buffer): void {
    let at = 0;
    while (at < piece.length) {
      if (this.#isWaiting) {
        const rest = piece.subarray(at);
        this.#backlog.unshift(rest);
        this.#backlogBytes += rest.length;
        return;
      }
      if (this.#isBetweenMessages) {
        this.#sendInjections();
        this.#isGating = this.#mustRewrite || this.#isDiscarding || this.#gates();
      }
      const next = this.#reader.read(piece, at);
      const bytes = piece.subarray(at, next);
      const read = this.#readFrame();
      if (this.#isBroken) {
        this.#flushHeld();
        return this.#pass(piece.subarray(at));
      }
      this.#hold(bytes);
      at = next;
      if (read !== undefined) this.#frameRead(read.frame, read.read);
    }
  }

  #hold(bytes: Buffer): void {
    if (!this.#isGating) return this.#outlet.send(bytes);
    if (this.#isDiscarding) return;
    this.#frameWire.push(bytes);
    this.#heldBytes += bytes.length;
    if (this.#heldBytes <= this.#terms.keptBytes + FRAMING_BYTES) return;
    // Too large to decide on.
    if (this.#mustRewrite) this.#stopInspecting();
    this.#flushHeld();
  }

  /** A compressed message depends on one that was changed or dropped, and cannot be rewritten. */
  #stopInspecting(): void {
    this.#isBroken = true;
    this.#handler.broken(this.#direction, "A message behind a changed one is too large to be compressed anew");
  }

  #gates(): boolean {
    return this.#terms.mayChange && this.#handler.gates(this.#direction);
  }

  /** Forwards the buffer unchanged. */
  #flushHeld(): void {
    if (!this.#isDiscarding) for (const bytes of [...this.#held.wire, ...this.#frameWire]) this.#outlet.send(bytes);
    for (const frame of this.#held.frames) this.#record(frame);
    this.#held = { wire: [], frames: [] };
    this.#frameWire = [];
    this.#heldBytes = 0;
    this.#isGating = false;
  }

  #frameRead(frame: WireFrame, read: ReadFrame): void {
    const tapped = this.#tapped(frame, read);
    if (!this.#isGating) return this.#record(tapped);
    const wire = this.#frameWire;
    this.#frameWire = [];
    if (isControl(frame.opcode)) {
      // Control frames inside a message are sent before it, which is equivalent.
      for (const bytes of wire) this.#heldBytes -= bytes.length;
      return this.#decide({ wire, frames: [tapped] }, read);
    }
    this.#held.wire.push(...wire);
    this.#held.frames.push(tapped);
    if (read.message === undefined) return;
    const held = this.#held;
    this.#held = { wire: [], frames: [] };
    this.#heldBytes = 0;
    this.#decide(held, read);
  }

  #decide(held: Held, { message, problem }: ReadFrame): void {
    if (message === undefined) return;
    if (this.#isDiscarding) return this.#leaveOut(held, message);
    if (message.isCut || problem !== undefined || !this.#gates()) return this.#goOn(held, message);
    const { opcode, payload } = message;
    const verdict = this.#handler.decide({ direction: this.#direction, opcode, payload });
    if (!(verdict instanceof Promise)) return this.#apply(verdict, held, message);
    const undecided = { held, message };
    this.#undecided = undecided;
    void verdict.then((later) => {
      if (this.#undecided !== undecided) return;
      this.#undecided = undefined;
      this.#apply(later, held, message);
      this.#workOff();
    });
  }

  #apply(verdict: MessageVerdict, held: Held, message: ReadMessage): void {
    switch (verdict.kind) {
      case "pass":
        return this.#goOn(held, message);
      case "drop":
        this.#mustRewrite ||= message.isCompressed && this.#terms.takesOver;
        return this.#leaveOut(held, message);
      case "replace":
        this.#mustRewrite ||= message.isCompressed && this.#terms.takesOver;
        this.#write(message.opcode, verdict.payload);
        this.#record(this.#whole(held, message, { effect: "modified", payload: verdict.payload }));
    }
  }

  #goOn({ wire, frames }: Held, message: ReadMessage): void {
    const mustRewrite = this.#mustRewrite && message.isCompressed;
    if (mustRewrite && message.isCut) this.#stopInspecting();
    if (mustRewrite && !message.isCut) this.#write(message.opcode, message.payload);
    else for (const bytes of wire) this.#outlet.send(bytes);
    for (const frame of frames) this.#record(frame);
  }

  #leaveOut(held: Held, message: ReadMessage): void {
    this.#record(this.#whole(held, message, { effect: "dropped", payload: message.payload }));
  }

  /** One record for a message that was not forwarded unchanged. */
  #whole(
    { frames }: Held,
    { opcode, payload, isCompressed, fragments }: ReadMessage,
    change: { effect: "modified" | "dropped"; payload: Buffer },
  ): TappedFrame {
    return {
      direction: this.#direction,
      opcode,
      isFinal: true,
      atMs: frames[0]?.atMs ?? Date.now(),
      payload: change.payload,
      sizeBytes: change.payload.length,
      wireBytes: frames.reduce((sum, { wireBytes }) => sum + wireBytes, 0),
      isCompressed,
      mask: frames[0]?.mask,
      fragments: fragments > 1 ? fragments : undefined,
      problem: undefined,
      effect: change.effect,
      original: change.effect === "modified" ? payload : undefined,
    };
  }

  #sendInjections(): void {
    for (const { opcode, payload } of this.#injections.splice(0)) {
      const bytes = this.#write(opcode, payload);
      this.#record({
        direction: this.#direction,
        opcode,
        isFinal: true,
        atMs: Date.now(),
        payload,
        sizeBytes: payload.length,
        wireBytes: bytes.length,
        isCompressed: false,
        mask: undefined,
        fragments: undefined,
        problem: undefined,
        effect: "injected",
        original: undefined,
      });
    }
  }

  #write(opcode: number, payload: Buffer): Buffer {
    const mask = this.#direction === "send" ? randomBytes(4).readUInt32BE(0) : undefined;
    const bytes = frameBytes({ opcode, payload, mask });
    this.#outlet.send(bytes);
    return bytes;
  }

  #pass(piece: Buffer): void {
    if (!this.#isDiscarding) this.#outlet.send(piece);
  }

  #tapped(frame: WireFrame, { payload, sizeBytes, isCompressed, message, problem }: ReadFrame): TappedFrame {
    const { opcode, isFinal, wireBytes, mask } = frame;
    const fragments = message === undefined || message.fragments === 1 ? undefined : message.fragments;
    return {
      direction: this.#direction,
      opcode,
      isFinal,
      atMs: Date.now(),
      payload,
      sizeBytes,
      wireBytes,
      isCompressed,
      mask,
      fragments,
      problem,
      effect: undefined,
      original: undefined,
    };
  }

  #record(frame: TappedFrame): void {
    this.#handler.frame(frame);
    if (frame.opcode !== OPCODES.close || frame.effect === "injected" || this.hasClosed) return;
    this.hasClosed = true;
    this.#onClose();
  }

  /** After a decision: processes the input buffered meanwhile. */
  #workOff(): void {
    while (!this.#isWaiting) {
      const piece = this.#backlog.shift();
      if (piece === undefined) break;
      this.#backlogBytes -= piece.length;
      this.#take(piece);
    }
    if (!this.isHolding) this.#outlet.release();
    if (!this.#isWaiting) this.#finish();
  }

  /** The sender is done: an incomplete buffered message is forwarded unchanged. */
  #finish(): void {
    const done = this.#whenDone;
    if (done === undefined) return;
    this.#whenDone = undefined;
    this.#flushHeld();
    done();
  }
}

/** Decompression limit per message; it runs synchronously. */
const MAX_INFLATED_BYTES = 16_777_216;
/** How long peers have to reply to our close frame. */
const GOODBYE_MS = 2000;

/** The tap of an exchange that became a WebSocket connection; undefined if no slice handles its messages. */
export function websocketTap(services: ProxyServices, exchange: Exchange): OpenTap | undefined {
  const { request, response } = exchange;
  if (response === undefined || (request.scheme !== "ws" && request.scheme !== "wss")) return undefined;
  return (up, down, end) => {
    const tap = new WebSocketTap(services, exchange, end);
    return tap.open(up, down) ? tap : undefined;
  };
}

class WebSocketTap implements MessageTap, MessageControl {
  readonly #services: ProxyServices;
  readonly #exchange: Exchange;
  readonly #end: () => void;
  #handler: MessageHandler | undefined;
  #directions: { readonly up: WebSocketDirection; readonly down: WebSocketDirection } | undefined;
  #isFinished = false;
  #isClosing = false;
  #goodbye: NodeJS.Timeout | undefined;

  constructor(services: ProxyServices, exchange: Exchange, end: () => void) {
    this.#services = services;
    this.#exchange = exchange;
    this.#end = end;
  }

  /** False: no slice takes part. */
  open(up: TapOutlet, down: TapOutlet): boolean {
    const handler = this.#services.pipeline.messages(this.#exchange, this);
    if (handler === undefined) return false;
    this.#handler = handler;
    const [sent, received, unknown] = this.#terms();
    const onClose = (): void => this.#sideClosed();
    this.#directions = {
      up: new WebSocketDirection("send", sent, handler, up, onClose),
      down: new WebSocketDirection("receive", received, handler, down, onClose),
    };
    if (unknown.length > 0) {
      for (const direction of ["send", "receive"] as const) {
        handler.broken(direction, `The extension ${unknown.join(", ")} is not known: compressed messages are not read`);
      }
    }
    return true;
  }

  get up(): WebSocketDirection {
    return this.#both.up;
  }

  get down(): WebSocketDirection {
    return this.#both.down;
  }

  get isDeciding(): boolean {
    return this.up.isDeciding || this.down.isDeciding;
  }

  inject(direction: MessageDirection, opcode: number, payload: Buffer): boolean {
    if (this.#isFinished || this.#isClosing) return false;
    return (direction === "send" ? this.up : this.down).inject(opcode, payload);
  }

  close(code: number, reason: string): boolean {
    if (this.#isFinished || this.#isClosing) return false;
    this.#isClosing = true;
    const payload = closePayload(code, reason);
    this.up.close(payload);
    this.down.close(payload);
    this.#goodbye = setTimeout(() => this.#end(), GOODBYE_MS);
    this.#sideClosed();
    return true;
  }

  closed(failure: Failure | undefined): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    clearTimeout(this.#goodbye);
    this.#handler?.closed(failure);
  }

  get #both(): { readonly up: WebSocketDirection; readonly down: WebSocketDirection } {
    if (this.#directions === undefined) throw new TypeError("The tap is not open");
    return this.#directions;
  }

  #sideClosed(): void {
    if (this.#isClosing && this.up.hasClosed && this.down.hasClosed) setImmediate(this.#end);
  }

  /** Terms for both directions, and the unknown extensions. */
  #terms(): readonly [DirectionTerms, DirectionTerms, readonly string[]] {
    const keptBytes = this.#services.policy().maxBodyBytes;
    const { fields = [] } = this.#exchange.response ?? {};
    const { deflate, unknown } = readDeflate(fieldValues(fields, "sec-websocket-extensions"));
    const terms = (takesOver: boolean): DirectionTerms => ({
      inflater: deflate && new MessageInflater(takesOver, Math.min(keptBytes, MAX_INFLATED_BYTES)),
      takesOver: deflate !== undefined && takesOver,
      mayChange: unknown.length === 0,
      // An unknown extension may use any reserved bit: frames are read, compressed payloads are not.
      allowedReserved: unknown.length > 0 ? 7 : deflate === undefined ? 0 : 4,
      keptBytes,
    });
    return [
      terms(deflate?.clientNoContextTakeover !== true),
      terms(deflate?.serverNoContextTakeover !== true),
      unknown,
    ];
  }
}
