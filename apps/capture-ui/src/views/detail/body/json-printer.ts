/** The first position at which a text is not valid JSON. */
export interface JsonProblem {
  /** Byte offset in the input. */
  readonly offset: number;
  readonly message: string;
}

type Expectation = "value" | "first-value" | "key" | "first-key" | "colon" | "comma";

const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const NEWLINE = 0x0a;
const SPACE = 0x20;

/** Deeper levels are not indented further: nested brackets alone could exhaust memory. */
const MAX_INDENT_LEVELS = 40;
const MAX_BROKEN_LEVELS = 200;
const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/u;

/**
 * Formats JSON that arrives in chunks, without parsing values: numbers, escapes, key order and repeated keys are
 * unchanged. Sequences of values (NDJSON) are supported. Invalid JSON is printed as far as possible, and {@link
 * problem} gives the position.
 */
export class JsonPrinter {
  readonly #write: (bytes: Uint8Array) => void;
  #out = new Uint8Array(65_536);
  #used = 0;
  readonly #stack: number[] = [];
  #expect: Expectation = "value";
  #inString = false;
  #escaped = false;
  #scalar = "";
  #offset = 0;
  #started = false;
  #pendingBreak = false;
  #problem: JsonProblem | null = null;

  constructor(write: (bytes: Uint8Array) => void) {
    this.#write = write;
  }

  get problem(): JsonProblem | null {
    return this.#problem;
  }

  push(chunk: Uint8Array): void {
    for (let index = 0; index < chunk.length; index++) {
      const byte = chunk[index] ?? 0;
      if (this.#inString) this.#stringByte(byte);
      else this.#byte(byte);
      this.#offset++;
    }
    this.#flush();
  }

  finish(): void {
    this.#endScalar();
    if (this.#inString) this.#fail("Unterminated string");
    else if (this.#stack.length > 0) this.#fail("Unterminated object or array");
    else if (!this.#started) this.#fail("No value");
    this.#flush();
  }

  #byte(byte: number): void {
    if (byte === SPACE || byte === NEWLINE || byte === 0x0d || byte === 0x09) {
      this.#endScalar();
      return;
    }
    // A byte order mark is ignored.
    if (!this.#started && (byte === 0xef || byte === 0xbb || byte === 0xbf) && this.#offset < 3) return;
    switch (byte) {
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        this.#open(byte);
        return;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        this.#close(byte);
        return;
      case COMMA:
        this.#endScalar();
        if (this.#expect !== "comma" || this.#stack.length === 0) this.#fail("Unexpected comma");
        this.#put(COMMA);
        this.#break();
        this.#expect = this.#stack.at(-1) === OPEN_OBJECT ? "key" : "value";
        return;
      case COLON:
        this.#endScalar();
        if (this.#expect !== "colon") this.#fail("Unexpected colon");
        this.#put(COLON);
        this.#put(SPACE);
        this.#expect = "value";
        return;
      case QUOTE:
        this.#beginValue(true);
        this.#put(byte);
        this.#inString = true;
        return;
      default:
        if (this.#scalar === "") this.#beginValue(false);
        // Longer than any literal; the excess is invalid anyway.
        if (this.#scalar.length < 400) this.#scalar += String.fromCharCode(byte);
        this.#put(byte);
    }
  }

  #stringByte(byte: number): void {
    this.#put(byte);
    if (this.#escaped) this.#escaped = false;
    else if (byte === BACKSLASH) this.#escaped = true;
    else if (byte === QUOTE) this.#inString = false;
    else if (byte < SPACE) this.#fail("Control character in string");
  }

  #beginValue(isString: boolean): void {
    this.#endScalar();
    const key = this.#expect === "key" || this.#expect === "first-key";
    if (this.#expect === "colon") this.#fail("Missing colon");
    if (key && !isString) this.#fail("Object key must be a string");
    if (this.#expect === "comma") {
      if (this.#stack.length > 0) this.#fail("Missing comma");
      this.#pendingBreak = true;
    }
    this.#settle();
    this.#started = true;
    this.#expect = key ? "colon" : "comma";
  }

  #open(byte: number): void {
    this.#beginValue(false);
    this.#put(byte);
    this.#stack.push(byte);
    this.#break();
    this.#expect = byte === OPEN_OBJECT ? "first-key" : "first-value";
  }

  #close(byte: number): void {
    this.#endScalar();
    const opener = this.#stack.at(-1);
    if (opener === undefined) this.#fail("Unmatched closing bracket");
    else if ((opener === OPEN_OBJECT) !== (byte === CLOSE_OBJECT)) this.#fail("Mismatched closing bracket");
    else if (this.#expect === "key" || this.#expect === "value") this.#fail("Missing value before bracket");
    else if (this.#expect === "colon") this.#fail("Key without value");
    const empty = this.#expect === "first-key" || this.#expect === "first-value";
    this.#stack.pop();
    this.#pendingBreak = false;
    if (!empty) {
      this.#break();
      this.#settle();
    }
    this.#put(byte);
    this.#expect = "comma";
  }

  #endScalar(): void {
    if (this.#scalar === "") return;
    if (!SCALAR.test(this.#scalar)) this.#fail("Expected a number, true, false or null", this.#scalar.length);
    this.#scalar = "";
  }

  #fail(message: string, back = 0): void {
    this.#problem ??= { offset: Math.max(0, this.#offset - back), message };
  }

  #break(): void {
    this.#pendingBreak = true;
  }

  #settle(): void {
    if (!this.#pendingBreak) return;
    this.#pendingBreak = false;
    const depth = this.#stack.length;
    if (depth > MAX_BROKEN_LEVELS) return;
    this.#put(NEWLINE);
    for (let level = Math.min(depth, MAX_INDENT_LEVELS) * 2; level > 0; level--) this.#put(SPACE);
  }

  #put(byte: number): void {
    if (this.#used === this.#out.length) this.#flush();
    this.#out[this.#used++] = byte;
  }

  #flush(): void {
    if (this.#used === 0) return;
    this.#write(this.#out.subarray(0, this.#used));
    this.#used = 0;
  }
}
