import { randomBytes } from "node:crypto";
import { frameBytes, FrameReader, isControl, MessageReader, OPCODES } from "@headworks/websocket";
import type { FrameReaderOptions, MessageInflater, ReadFrame, ReadMessage, WireFrame } from "@headworks/websocket";
import type { MessageDirection, MessageHandler, MessageVerdict, TappedFrame } from "#exchange/messages.ts";
import type { DirectionTap, TapOutlet } from "./message-tap.ts";

/** Bytes behind a message that waits, before reading stops. */
const BACKLOG_BYTES = 65_536;
/** Heads of frames in a message that is held. */
const FRAMING_BYTES = 65_536;

/** How a direction is to be read. */
export interface DirectionTerms {
  readonly inflater: MessageInflater | undefined;
  /** Compressed messages refer to those before: what is taken out of their row must be made up for. */
  readonly takesOver: boolean;
  /** Messages can be understood, so that they may be replaced and left out. */
  readonly mayChange: boolean;
  readonly allowedReserved: number;
  /** Bytes of a message that are kept. */
  readonly keptBytes: number;
}

/** A message that is held back, and what is to be recorded when it goes on. */
interface Held {
  readonly wire: Buffer[];
  readonly frames: TappedFrame[];
}

/**
 * One direction of a WebSocket connection. As long as nobody wants to decide, bytes go on before they are looked at, and
 * just as they came. With decisions to be made, whole messages are held, then passed on as they came, replaced or left out.
 */
export class WebSocketDirection implements DirectionTap {
  /** The sender said goodbye. */
  hasClosed = false;
  readonly #direction: MessageDirection;
  readonly #terms: DirectionTerms;
  readonly #handler: MessageHandler;
  readonly #outlet: TapOutlet;
  readonly #onClose: () => void;
  readonly #reader: FrameReader;
  readonly #joiner: MessageReader;
  #isBroken = false;
  /** Nothing of this direction is passed on any more. */
  #isDiscarding = false;
  /** What is read now is held until it is complete and decided on. */
  #isGating = false;
  /** The message that waits for a decision. */
  #undecided: { readonly held: Held; readonly message: ReadMessage } | undefined;
  /** A compressed message was changed or left out: later ones are passed on uncompressed. */
  #mustRewrite = false;
  /** Of the frame that is being read. */
  #frameWire: Buffer[] = [];
  #held: Held = { wire: [], frames: [] };
  #heldBytes = 0;
  #backlog: Buffer[] = [];
  #backlogBytes = 0;
  #injections: { readonly opcode: number; readonly payload: Buffer }[] = [];
  #whenDone: (() => void) | undefined;

  /** @param onClose  called with the first close frame of the sender */
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

  /** A decision is waited for. */
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

  /** Sends a message of our own as soon as no other one is under way. False: that cannot be. */
  inject(opcode: number, payload: Buffer): boolean {
    if (this.#isBroken || this.#isDiscarding || this.hasClosed) return false;
    this.#injections.push({ opcode, payload });
    if (this.#isGating || this.#isBetweenMessages) this.#sendInjections();
    return true;
  }

  /** Says goodbye to the receiver; what the sender still says is not passed on. */
  close(payload: Buffer): void {
    this.inject(OPCODES.close, payload);
    this.#isDiscarding = true;
    const undecided = this.#undecided;
    if (undecided === undefined) return;
    // Whatever is decided about it now, nobody gets it any more.
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

  /** The frame that the reader just completed; undefined: there is none, or the protocol is broken. */
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
        this.#letGo();
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
    // Too large to be decided on.
    if (this.#mustRewrite) this.#giveUp();
    this.#letGo();
  }

  /** A compressed message cannot be passed on as it came, because one before it was not, and cannot be rewritten. */
  #giveUp(): void {
    this.#isBroken = true;
    this.#handler.broken(this.#direction, "A message behind a changed one is too large to be compressed anew");
  }

  #gates(): boolean {
    return this.#terms.mayChange && this.#handler.gates(this.#direction);
  }

  /** What is held goes on as it came. */
  #letGo(): void {
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
      // Control frames may stand inside a message: they go before it, which means the same.
      for (const bytes of wire) this.#heldBytes -= bytes.length;
      return this.#ask({ wire, frames: [tapped] }, read);
    }
    this.#held.wire.push(...wire);
    this.#held.frames.push(tapped);
    if (read.message === undefined) return;
    const held = this.#held;
    this.#held = { wire: [], frames: [] };
    this.#heldBytes = 0;
    this.#ask(held, read);
  }

  #ask(held: Held, { message, problem }: ReadFrame): void {
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
    if (mustRewrite && message.isCut) this.#giveUp();
    if (mustRewrite && !message.isCut) this.#write(message.opcode, message.payload);
    else for (const bytes of wire) this.#outlet.send(bytes);
    for (const frame of frames) this.#record(frame);
  }

  #leaveOut(held: Held, message: ReadMessage): void {
    this.#record(this.#whole(held, message, { effect: "dropped", payload: message.payload }));
  }

  /** One record for a message that did not pass as it came. */
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

  /** After a decision: what came meanwhile has its turn. */
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

  /** The sender is done: what is held of an incomplete message goes on as it came. */
  #finish(): void {
    const done = this.#whenDone;
    if (done === undefined) return;
    this.#whenDone = undefined;
    this.#letGo();
    done();
  }
}
