import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createSandbox, type GuestOutcome, type GuestProgram, type GuestValue, type Sandbox } from "./index.ts";

/** The least that a prelude does: calls the function with the host's functions as last argument. */
const PRELUDE = `(function (host) {
  let settled;
  globalThis.print = (text) => host.log("log", text);
  return {
    invoke: (fn, name, ...args) => {
      const returned = fn(...args, host);
      if (returned === null || typeof returned !== "object" || typeof returned.then !== "function") return returned ?? null;
      settled = undefined;
      returned.then((value) => { settled = { value } }, (error) => { settled = { error } });
    },
    settled: () => {
      const current = settled;
      if (current === undefined) throw new Error("never settled");
      if ("error" in current) throw current.error;
      return current.value ?? null;
    },
  };
})`;

const MIB = 1_048_576;
const LIMIT = 10 * MIB;
const THREADS = 2;

let sandbox: Sandbox;
before(() => {
  sandbox = createSandbox({ prelude: PRELUDE, maxThreads: THREADS, threadName: "sandbox-test" });
});
after(() => sandbox.close());

function program(source: string, more: Partial<GuestProgram> = {}): GuestProgram {
  return {
    key: "guest",
    source,
    filename: "script.js",
    functions: ["run", "other"],
    memoryLimitBytes: LIMIT,
    values: {},
    timeoutMs: 5000,
    ...more,
  };
}

const OTHER = `function other() { return "works" }`;

interface CallOptions {
  readonly memoryLimitBytes?: number;
  readonly args?: readonly GuestValue[];
  readonly timeoutMs?: number;
}

/** Loads a function of this body, and calls it. */
async function run(
  body: string,
  { memoryLimitBytes = LIMIT, args = [], timeoutMs = 5000 }: CallOptions = {},
): Promise<GuestOutcome> {
  const source = `function run(first, second) { ${body} }\n${OTHER}`;
  assert.equal(await sandbox.load(program(source, { memoryLimitBytes })), undefined);
  return await sandbox.call("guest", "run", args, timeoutMs);
}

async function assertUsable(): Promise<void> {
  const outcome = await sandbox.call("guest", "other", [], 5000);
  assert.equal(outcome.fault, undefined);
  assert.deepEqual(outcome.values, ["works"]);
}

/** What a function returned, or its fault. */
function shown({ values, fault }: GuestOutcome): unknown {
  return fault === undefined ? values[0] : `${fault.kind}: ${fault.message}`;
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

describe("memory", () => {
  const BOMBS = {
    arrays: `const kept = []; for (;;) kept.push(new Array(1000).fill(1))`,
    "one array": `return String(Array(1e9).fill(0).length)`,
    "array buffers": `const kept = []; for (;;) kept.push(new ArrayBuffer(${MIB}))`,
    "one array buffer": `return String(new ArrayBuffer(2 ** 31 - 1).byteLength)`,
    "a resized buffer": `const buffer = new ArrayBuffer(1, { maxByteLength: 2 ** 31 - 1 }); buffer.resize(2 ** 31 - 1)`,
    "typed arrays": `const kept = []; for (;;) kept.push(new Float64Array(1e5))`,
    strings: `const kept = []; for (;;) kept.push(String.fromCharCode(0x4e00 + kept.length).repeat(1e5))`,
    "a padded string": `return "a".padStart(2 ** 29, "x")`,
    "a string that is joined when it leaves": `let text = "x"; for (let n = 0; n < 29; n++) text += text; return text`,
    symbols: `const kept = []; for (;;) kept.push(Symbol("x".repeat(1000) + kept.length))`,
    "registered symbols": `const kept = []; for (;;) kept.push(Symbol.for("x" + kept.length))`,
    maps: `const kept = new Map(); for (let n = 0; ; n++) kept.set(n, { n })`,
    "objects and closures": `const kept = {}; for (let n = 0; ; n++) kept["key" + n] = () => n`,
    proxies: `let proxy = {}; for (;;) proxy = new Proxy(proxy, {})`,
    generators: `const kept = []; function* numbers() { yield 1 } for (;;) kept.push(numbers())`,
    promises: `const kept = []; for (;;) kept.push(new Promise(() => {}))`,
    "an async function": `return (async () => { await 0; const kept = []; for (;;) kept.push(new Array(1000).fill(1)) })()`,
  };
  for (const [name, body] of Object.entries(BOMBS)) {
    test(`is limited for ${name}`, async () => {
      const { fault } = await run(body, { timeoutMs: 30_000, memoryLimitBytes: 4 * MIB });
      assert.deepEqual(fault, { kind: "memory", message: "The script used more than 4 MiB of memory" });
      await assertUsable();
    });
  }

  for (const [name, body] of Object.entries({
    repeat: `return "ab".repeat(2 ** 29)`,
    concatenation: `let text = "x"; for (;;) text += text + Math.random()`,
    "large integers": `let number = 2n; for (;;) number *= number`,
    "regular expressions": `const kept = []; for (;;) kept.push(new RegExp("(a|b)".repeat(100) + kept.length))`,
  })) {
    test(`is limited for ${name}, as an error of the language`, async () => {
      const { fault } = await run(body);
      assert.match(
        `${fault?.kind}: ${fault?.message}`,
        /^error: (?:Range|Internal|Syntax)Error: .*(?:long|length|large|memory)/,
      );
      await assertUsable();
    });
  }

  test("of the process stays bounded when bombs explode again and again", async () => {
    const explode = async (): Promise<void> => {
      const { fault } = await sandbox.call("guest", "run", [], 20_000);
      assert.equal(fault?.kind, "memory");
    };
    await sandbox.load(program(`function run() { const kept = []; for (;;) kept.push(new ArrayBuffer(${MIB})) }`));
    await explode();
    collectGarbage();
    const before = process.memoryUsage().rss;
    for (let round = 0; round < 20; round += 1) await explode();
    collectGarbage();
    const grown = process.memoryUsage().rss - before;
    assert.ok(grown < 80 * MIB, `grew by ${String(Math.round(grown / MIB))} MiB in 20 rounds of 10 MiB`);
  });

  test("is not filled by arguments: larger ones than the limit are refused before they are copied", async () => {
    for (const arg of ["x".repeat(2 * LIMIT), new Uint8Array(2 * LIMIT)]) {
      const outcome = await run(`return "began"`, { args: [arg] });
      assert.equal(shown(outcome), "memory: The message is larger than the script's memory of 10 MiB");
      await assertUsable();
    }
  });

  test("is limited for arguments that fit only without the rest of the interpreter", async () => {
    for (const arg of ["x".repeat(LIMIT - 1000), "ä".repeat(LIMIT - 1000), new Uint8Array(LIMIT - 1000)]) {
      const outcome = await run(`return "began with " + typeof first`, { args: [arg] });
      assert.equal(outcome.fault?.kind, "memory");
      await assertUsable();
    }
  });

  test("of the thread is used up by no result", async () => {
    const outcome = await run(`return new Array(8).fill("x".repeat(4e6))`);
    assert.equal(outcome.fault, undefined);
    assert.deepEqual(
      outcome.values.map((value) => value?.length),
      Array.from({ length: 8 }, () => 4e6),
    );
  });
});

describe("time", () => {
  for (const [name, body] of Object.entries({
    "an endless loop": `for (;;);`,
    "endless microtasks": `return new Promise(() => { (function next() { Promise.resolve().then(next) })() })`,
    "endless microtasks that nothing waits for": `(function next() { Promise.resolve().then(next) })(); return "returned"`,
    "an endless async function": `return (async () => { for (;;) await 0 })()`,
    "a loop after await": `return (async () => { await 0; for (;;); })()`,
    "a loop that catches everything": `for (;;) try { for (;;); } catch {} finally { continue }`,
    "a loop in a getter of what is thrown": `throw { get message() { for (;;); } }`,
    "a loop in what is returned": `return { get then() { for (;;); } }`,
    "a catastrophic pattern": `return String(/^(a+)+$/.test("a".repeat(50) + "b"))`,
    "a catastrophic replacement": `return ("a".repeat(50) + "b").replace(/(a|a)+$/, "")`,
    "an endless iterator": `return [...{ [Symbol.iterator]: () => ({ next: () => ({ value: 0 }) }) }].at(0)`,
    "an endless proxy": `const proxy = new Proxy({}, { get: (target, name, self) => { for (;;); } }); return proxy.x`,
  })) {
    test(`ends ${name}`, async () => {
      const outcome = await run(body, { timeoutMs: 300 });
      // The last but one may also use up the memory first.
      if (name === "an endless iterator" && outcome.fault?.kind === "memory") return;
      assert.deepEqual(outcome.fault, { kind: "timeout", message: "The script took longer than 300 ms" });
      assert.ok(outcome.durationMs < 3000, `took ${String(outcome.durationMs)} ms`);
      await assertUsable();
    });
  }

  test("ends a native call that cannot be interrupted, with its thread; guests of other threads go on", async () => {
    const elsewhere = createSandbox({ prelude: PRELUDE, maxThreads: 2, threadName: "sandbox-test" });
    try {
      await elsewhere.load(program(`function run() { new Array(1e8).join("xx") }\n${OTHER}`, { key: "blocking" }));
      await elsewhere.load(program(OTHER, { key: "neighbour" }));
      assert.equal(shown(await elsewhere.call("neighbour", "other", [], 30_000)), "works");
      const blocked = elsewhere.call("blocking", "run", [], 300);
      const neighbours = await Promise.all(
        Array.from({ length: 20 }, () => elsewhere.call("neighbour", "other", [], 30_000)),
      );
      assert.deepEqual(new Set(neighbours.map(shown)), new Set(["works"]));
      assert.equal(shown(await blocked), "timeout: The script did not return in time and could not be interrupted");
      assert.equal(shown(await elsewhere.call("blocking", "other", [], 30_000)), "works");
    } finally {
      await elsewhere.close();
    }
  });

  test("a guest of the thread that was ended is called in the next one", async () => {
    const one = createSandbox({ prelude: PRELUDE, maxThreads: 1, threadName: "sandbox-test" });
    try {
      await one.load(program(`function run() { new Array(1e8).join("xx") }`, { key: "blocking" }));
      await one.load(program(OTHER, { key: "neighbour" }));
      const blocked = one.call("blocking", "run", [], 200);
      const waited = one.call("neighbour", "other", [], 20_000);
      assert.equal((await blocked).fault?.kind, "timeout");
      assert.equal(shown(await waited), "works");
    } finally {
      await one.close();
    }
  });

  test("a source that blocks its thread while it loads does not keep others from running", async () => {
    const one = createSandbox({ prelude: PRELUDE, maxThreads: 1, threadName: "sandbox-test" });
    try {
      const blocking = program(`new Array(1e8).join("xx")`, { key: "blocking", timeoutMs: 200 });
      const loaded = one.load(blocking);
      const neighbour = one.load(program(OTHER, { key: "neighbour" }));
      assert.equal((await loaded)?.kind, "timeout");
      assert.equal(await neighbour, undefined);
      assert.equal(shown(await one.call("neighbour", "other", [], 5000)), "works");
      assert.equal((await one.call("blocking", "run", [], 200)).fault?.kind, "timeout");
      assert.equal(shown(await one.call("neighbour", "other", [], 20_000)), "works");
    } finally {
      await one.close();
    }
  });

  test("that a call waits for its thread counts, and such a call is not begun", async () => {
    const one = createSandbox({ prelude: PRELUDE, maxThreads: 1, threadName: "sandbox-test" });
    try {
      await one.load(
        program(`let calls = 0; function run() { for (;;); } function other() { return String(++calls) }`),
      );
      const busy = one.call("guest", "run", [], 1000);
      const waiting = await one.call("guest", "other", [], 100);
      assert.equal(shown(waiting), "timeout: The script's thread was busy until the timeout");
      assert.equal((await busy).fault?.kind, "timeout");
      assert.equal(shown(await one.call("guest", "other", [], 5000)), "1");
    } finally {
      await one.close();
    }
  });

  test("limits the top level of a source", async () => {
    const fault = await sandbox.load(program(`for (;;);`, { timeoutMs: 200 }));
    assert.deepEqual(fault, { kind: "timeout", message: "The script took longer than 200 ms" });
    assert.equal((await sandbox.call("guest", "run", [], 5000)).fault?.kind, "timeout");
    assert.equal(await sandbox.load(program(OTHER)), undefined);
    await assertUsable();
  });

  test("short limits do not count the start of a thread", async () => {
    const fresh = createSandbox({ prelude: PRELUDE, maxThreads: 1, threadName: "sandbox-test" });
    try {
      assert.equal(await fresh.load(program(OTHER, { timeoutMs: 10 })), undefined);
      assert.equal(shown(await fresh.call("guest", "other", [], 1000)), "works");
    } finally {
      await fresh.close();
    }
  });
});

describe("deep recursion is an error of the script", () => {
  for (const [name, body] of Object.entries({
    calls: `(function again() { again() })()`,
    "JSON.parse": `JSON.parse("[".repeat(2e5) + "]".repeat(2e5))`,
    "JSON.stringify": `let deep = []; for (let n = 0; n < 5e4; n++) deep = [deep]; return JSON.stringify(deep)`,
    "Array.prototype.toString": `let deep = []; for (let n = 0; n < 5e4; n++) deep = [deep]; return String(deep)`,
    "a comparator": `const compare = () => { [1, 2].sort(compare); return 0 }; compare()`,
    getters: `const object = { get self() { return this.self } }; return object.self`,
    conversions: `const object = { toString: () => "" + object }; return "" + object`,
    toJSON: `const object = { toJSON: () => JSON.stringify(object) }; return JSON.stringify(object)`,
    replacements: `(function again() { "a".replace(/a/, again) })()`,
    proxies: `let proxy = {}; for (let n = 0; n < 2e4; n++) proxy = new Proxy(proxy, {}); return String(proxy.x)`,
    "Reflect.construct": `function Again() { Reflect.construct(Again, []) } new Again()`,
    patterns: `return String(new RegExp("(?:".repeat(1e5) + ")".repeat(1e5)).test("a"))`,
    "nested source": `return String(eval("(".repeat(1e5) + "1" + ")".repeat(1e5)))`,
    iterators: `function* again() { yield* again() } return [...again()].join()`,
    "a chain of prototypes": `let object = {}; for (let n = 0; n < 2e4; n++) object = Object.create(object); return String(object.x)`,
  })) {
    test(name, async () => {
      const outcome = await run(body);
      if (name !== "a chain of prototypes") {
        const { fault } = outcome;
        assert.match(`${fault?.kind}: ${fault?.message}`, /^(?:error|crash|memory): .*(?:stack|too deeply|memory)/i);
      }
      await assertUsable();
    });
  }
});

/** The globals of ECMAScript, and what the engine adds without reach beyond the interpreter. */
const GLOBALS = [
  ..."AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array Boolean DataView Date".split(" "),
  ..."Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity".split(" "),
  ..."Int16Array Int32Array Int8Array Iterator JSON Map Math NaN Number Object Promise Proxy RangeError".split(" "),
  ..."ReferenceError Reflect RegExp Set SharedArrayBuffer String SuppressedError Symbol SyntaxError".split(" "),
  ..."TypeError URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet".split(" "),
  ..."decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval globalThis isFinite isNaN".split(" "),
  ..."parseFloat parseInt undefined unescape AsyncDisposableStack DisposableStack".split(" "),
  ..."DOMException InternalError atob btoa performance queueMicrotask".split(" "),
];

describe("nothing of the host is reached", () => {
  test("through names", async () => {
    const outcome = await run(`return JSON.stringify(Object.getOwnPropertyNames(globalThis))`);
    const names = JSON.parse(String(shown(outcome))) as string[];
    const own = new Set(["print", "run", "other"]);
    assert.deepEqual(
      names.filter((name) => !own.has(name)).toSorted(),
      GLOBALS.filter((name) => names.includes(name)).toSorted(),
    );
    for (const name of [
      "process",
      "require",
      "fetch",
      "setTimeout",
      "WebAssembly",
      "std",
      "os",
      "module",
      "scriptArgs",
    ]) {
      assert.ok(!names.includes(name), name);
    }
  });

  const REACHED = `[typeof process, typeof require, typeof fetch, typeof setTimeout, typeof WebAssembly, typeof Buffer]`;
  const NOTHING = "undefined ".repeat(6).trim();
  for (const [name, body] of Object.entries({
    Function: `return Function("return ${REACHED}.join(' ')")()`,
    "the constructor of a constructor": `return "".constructor.constructor("return ${REACHED}.join(' ')")()`,
    AsyncFunction: `return (async () => {}).constructor("return ${REACHED}.join(' ')")()`,
    GeneratorFunction: `return (function* () {}).constructor("yield ${REACHED}.join(' ')")().next().value`,
    "an indirect eval": `return (0, eval)("${REACHED}.join(' ')")`,
    "the constructor of a host's function": `return second.log.constructor("return ${REACHED}.join(' ')")()`,
    "the constructor of a host's error": `try { second.hash(1) } catch (error) {
      return error.constructor.constructor("return ${REACHED}.join(' ')")() }`,
    "the constructor of host's bytes": `return second.encodeUtf8("x").constructor.constructor("return ${REACHED}.join(' ')")()`,
    "this of a sloppy function": `return (function () { return [typeof this.process, typeof this.require, typeof this.fetch,
      typeof this.setTimeout, typeof this.WebAssembly, typeof this.Buffer].join(' ') })()`,
  })) {
    test(`through ${name}`, async () => {
      assert.equal(shown(await run(body, { args: [null] })), NOTHING);
    });
  }

  for (const specifier of [
    "fs",
    "node:fs",
    "./guest.ts",
    "/etc/passwd",
    "data:text/javascript,export default 1",
    "std",
    "qjs:os",
  ]) {
    test(`through import("${specifier}")`, async () => {
      const outcome = await run(`return import(first).then(() => "loaded", (error) => error.name)`, {
        args: [specifier],
      });
      assert.equal(shown(outcome), "ReferenceError");
    });
  }

  test("through the stack of a host's error, which names no file", async () => {
    const outcome = await run(`try { second.hash(1) } catch (error) { return error.name + error.stack }`, {
      args: [null],
    });
    assert.match(String(shown(outcome)), /^TypeError/);
    assert.doesNotMatch(String(shown(outcome)), /file:|host-functions|node:|\.ts/);
  });

  test("through arguments of the host's functions that are neither text nor bytes", async () => {
    const outcome = await run(
      `const faults = [];
      for (const name of Object.keys(second)) {
        for (const value of [undefined, null, 1, {}, [], Symbol("x"), new Proxy({}, {}), () => 1, { toString: () => "sha256" }]) {
          try { second[name](value, value, value) } catch (error) { faults.push(error.name) }
        }
      }
      return String(faults.length > 50)`,
      { args: [null] },
    );
    assert.equal(shown(outcome), "true");
    await assertUsable();
  });
});

describe("what is thrown", () => {
  for (const [thrown, message] of Object.entries({
    null: "The script threw null",
    undefined: "The script threw undefined",
    "42": "The script threw 42",
    "10n": "The script threw 10",
    "'text'": 'The script threw "text"',
    'Symbol("x")': "The script threw a symbol",
    "{ a: 1 }": "Error: [object Object]",
    "[1, 2]": "Error: 1,2",
    "new Proxy({}, { get() { throw 1 } })": "The script threw a value that cannot be shown",
    "{ message: Symbol() }": "The script threw a value that cannot be shown",
    "{ get name() { throw 1 } }": "The script threw a value that cannot be shown",
    "Object.create(null)": "The script threw a value that cannot be shown",
    'new Error("interrupted")': "Error: interrupted (line 1, column 41)",
    'new Error("out of memory")': "Error: out of memory (line 1, column 41)",
    'Object.assign(new Error("x"), { stack: "script.js:99999999999999999999:1" })': "Error: x",
    'Object.defineProperty(new Error("x"), "stack", { value: 5 })': "Error: x",
  })) {
    test(`is shown: ${thrown}`, async () => {
      const { fault } = await run(`throw ${thrown}`);
      assert.deepEqual([fault?.kind, fault?.message], ["error", message]);
      await assertUsable();
    });
  }

  test("is cut", async () => {
    for (const thrown of [
      `new Error("x".repeat(2e6))`,
      `Object.assign(new Error("m"), { name: "x".repeat(2e6) })`,
      `"x".repeat(2e6)`,
      `{ toString: () => "x".repeat(2e6) }`,
    ]) {
      const { fault } = await run(`throw ${thrown}`);
      assert.equal(fault?.kind, "error");
      assert.ok(fault.message.length < 2200, thrown);
    }
  });

  test("has its position in UTF-16 units, also of async functions", async () => {
    assert.equal(
      await sandbox.load(program(`\nasync function run() {\r\n  await 0; "ä😀"; throw new TypeError("no") }`)),
      undefined,
    );
    const { fault } = await sandbox.call("guest", "run", [], 5000);
    assert.deepEqual(fault, { kind: "error", message: "TypeError: no (line 3, column 29)", line: 3, column: 29 });
  });
});

describe("values", () => {
  test("of arguments and results keep every UTF-16 unit", async () => {
    for (const text of [
      "",
      "\0",
      "a\0b",
      "é",
      "日本",
      "😀",
      "\ud800",
      "x\udc00y",
      "\ufeff",
      "\u2028",
      "<null>",
      "\ufeff\ufeff",
      "\ufeff<null>",
    ]) {
      assert.equal(shown(await run(`return first`, { args: [text] })), text);
    }
  });

  test("of bytes are copies", async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
    const outcome = await run(
      `first[0] = 9; const part = first.subarray(1, 4); return [first, part, new Uint8Array(0)]`,
      {
        args: [bytes],
      },
    );
    const [whole, part, empty] = outcome.values as Uint8Array[];
    assert.deepEqual([whole?.[0], whole?.length, bytes[0]], [9, 256, 0]);
    assert.deepEqual([...(part ?? [])], [1, 2, 3]);
    assert.equal(empty?.length, 0);
  });

  test("of other kinds fail the call, and the guest works afterwards", async () => {
    for (const value of ["5", "true", "{}", "[5]", "[{}]", "() => 1", "Symbol()", "new Proxy([1], {})", "new Map()"]) {
      const outcome = await run(`return ${value}`);
      assert.ok(outcome.fault !== undefined || value === "new Proxy([1], {})", value);
      await assertUsable();
    }
  });

  test("of console are capped", async () => {
    const long = await run(`print("x".repeat(1e6)); for (let n = 0; n < 1000; n++) print("line " + n); return "done"`);
    assert.equal(long.console.length, 201);
    assert.ok(long.console.join("").length < 70_000);
    assert.match(long.console.at(-1) ?? "", /dropped/);
    const wide = await run(`for (let n = 0; n < 100; n++) print("x".repeat(9000)); return "done"`);
    assert.ok(wide.console.join("").length < 75_000);
    assert.equal((await sandbox.call("guest", "other", [], 5000)).console.length, 0);
  });

  test("of console are kept with a fault", async () => {
    const outcome = await run(`print("before"); throw new Error("no")`);
    assert.deepEqual(outcome.console, ["before"]);
  });
});

describe("state", () => {
  test("of the top level survives calls and errors, and not a replaced source", async () => {
    const source = `let calls = 0; function run(fails) { calls += 1; if (fails) throw new Error("no"); return String(calls) }`;
    await sandbox.load(program(source));
    await sandbox.call("guest", "run", [null], 5000);
    await sandbox.call("guest", "run", ["yes"], 5000);
    assert.equal(shown(await sandbox.call("guest", "run", [null], 5000)), "3");
    await sandbox.load(program(`${source} // replaced`));
    assert.equal(shown(await sandbox.call("guest", "run", [null], 5000)), "1");
  });

  test("is not shared by guests, even of one thread", async () => {
    const one = createSandbox({ prelude: PRELUDE, maxThreads: 1, threadName: "sandbox-test" });
    try {
      const source = `function run(value, host) {
        const before = [typeof globalThis.left, typeof Array.prototype.left, host.storeGet("left")].join();
        globalThis.left = Array.prototype.left = value;
        host.storeSet("left", value);
        return before }`;
      for (const key of ["first", "second"]) await one.load(program(source, { key }));
      for (const key of ["first", "second"]) {
        assert.equal(shown(await one.call(key, "run", ["secret"], 5000)), "undefined,undefined,");
      }
    } finally {
      await one.close();
    }
  });

  test("does not grow with calls, whether they return, throw, or leave promises", async () => {
    await sandbox.load(
      program(`
        function run(kind, bytes) {
          if (kind === "throw") throw new Error("no");
          if (kind === "async") return Promise.resolve("done");
          if (kind === "left") Promise.resolve([1, 2, 3]).then((list) => list.map(String));
          print("line");
          return "x".repeat(100) + bytes.length;
        }
        function other(host) { return "works" }`),
    );
    const bytes = new Uint8Array(1000);
    const calls = async (count: number): Promise<void> => {
      for (let call = 0; call < count; call += 1) {
        const kind = ["return", "throw", "async", "left"][call % 4] ?? "";
        const { fault } = await sandbox.call("guest", "run", [kind, bytes], 5000);
        assert.equal(fault?.kind, kind === "throw" ? "error" : undefined, fault?.message);
      }
    };
    await calls(2000);
    collectGarbage();
    const { rss, heapUsed } = process.memoryUsage();
    await calls(10_000);
    collectGarbage();
    const now = process.memoryUsage();
    assert.ok(now.heapUsed - heapUsed < 5 * MIB, `the heap grew by ${String(now.heapUsed - heapUsed)} bytes`);
    assert.ok(now.rss - rss < 40 * MIB, `the process grew by ${String(now.rss - rss)} bytes`);
    await assertUsable();
  });

  test("of a guest that has only a little memory does not grow with calls", async () => {
    const source = `function run(text) { return JSON.stringify({ ...JSON.parse(text), more: [1, 2, 3] }) }`;
    await sandbox.load(program(source, { memoryLimitBytes: 2 * MIB }));
    const text = JSON.stringify({ list: Array.from({ length: 100 }, (_, at) => `item ${String(at)}`) });
    for (let call = 0; call < 3000; call += 1) {
      const { fault } = await sandbox.call("guest", "run", [text], 5000);
      assert.equal(fault, undefined);
    }
  });
});

describe("the store", () => {
  const SOURCE = `
    function run(key, value, host) { if (value === null) host.storeDelete(key); else host.storeSet(key, value); return "set" }
    function other(key, host) {
      if (key === "block") new Array(1e8).join("xx");
      if (key === "crash") for (;;);
      return key === "" ? host.storeKeys() : host.storeGet(key);
    }`;

  test("has the program's values, reports changes, and survives the interpreter and its thread", async () => {
    const one = createSandbox({ prelude: PRELUDE, maxThreads: 1, threadName: "sandbox-test" });
    const get = async (key: string): Promise<unknown> => shown(await one.call("guest", "other", [key], 5000));
    try {
      await one.load(program(SOURCE, { values: { given: "1", __proto__x: "2" } }));
      assert.equal(await get("given"), "1");
      const set = await one.call("guest", "run", ["a", "ü\0\ud800"], 5000);
      assert.deepEqual(set.changedValues, { a: "ü\0\ud800" });
      assert.deepEqual((await one.call("guest", "run", ["given", null], 5000)).changedValues, { given: null });
      assert.equal((await one.call("guest", "other", ["a"], 5000)).changedValues, undefined);
      for (const end of ["crash", "block"]) {
        assert.equal((await one.call("guest", "other", [end], 200)).fault?.kind, "timeout");
        assert.equal(await get("a"), "ü\0\ud800");
        assert.equal(await get("given"), null);
        assert.equal(await get(""), '["__proto__x","a"]');
      }
    } finally {
      await one.close();
    }
  });

  test("has keys like members of objects", async () => {
    await sandbox.load(program(SOURCE));
    for (const key of ["__proto__", "constructor", "toString", ""]) {
      const { changedValues } = await sandbox.call("guest", "run", [key, "1"], 5000);
      assert.deepEqual(Object.entries(changedValues ?? {}), [[key, "1"]]);
    }
    assert.equal(shown(await sandbox.call("guest", "other", ["__proto__"], 5000)), "1");
  });

  test("is limited to 1 MiB of keys and values, and can be freed", async () => {
    await sandbox.load(program(SOURCE));
    const set = async (key: string, value: string | null): Promise<unknown> =>
      shown(await sandbox.call("guest", "run", [key, value], 5000));
    assert.equal(await set("a", "x".repeat(MIB - 1)), "set");
    assert.match(String(await set("b", "x")), /^error: RangeError: store: more than 1 MiB/);
    assert.equal(await set("a", "x".repeat(MIB - 3)), "set");
    assert.equal(await set("b", "x"), "set");
    assert.match(String(await set("c", "x")), /^error: RangeError/);
    assert.equal(await set("a", null), "set");
    assert.equal(await set("c", "x".repeat(1000)), "set");
  });

  test("keeps no value that does not fit into the guest's memory", async () => {
    const outcome = await run(
      `let text = "x"; for (let n = 0; n < 26; n++) text += text;
       try { second.storeSet("key", text) } catch (error) { return error.message } return second.storeGet("key")`,
      { args: [null] },
    );
    assert.equal(shown(outcome), "out of memory");
    assert.equal(outcome.changedValues, undefined);
  });
});

describe("inspecting a source", () => {
  for (const [source, line, column] of [
    ["let a = ;", 1, 9],
    ["\n\nlet a = ;", 3, 9],
    ["let a = 1;\r\nlet a = 2;\r\n", 2, 7],
    ["run(\r\n\r\n)}", 3, 2],
    ["const text = `\n${ ] }`", 2, 4],
    ["function run() {\n  return `${`${1 +}`}`;\n}", 2, 19],
    ["var ä = '😀' ]", 1, 14],
    ["'use strict'; with (a) {}", 1, 15],
    ["'use strict'; var public = 1", 1, 19],
    ["import fs from 'fs'", 1, 8],
    ["export const a = 1", 1, 1],
    ["return 5", 1, 1],
  ] as const) {
    test(`finds the error of ${JSON.stringify(source)}`, async () => {
      const { fault, functions } = await sandbox.inspect(source, "script.js", ["run"]);
      assert.deepEqual([fault?.kind, fault?.line, fault?.column], ["error", line, column], fault?.message);
      assert.match(fault?.message ?? "", /^SyntaxError: .* \(line \d+, column \d+\)$/);
      assert.deepEqual(functions, []);
    });
  }

  test("finds clashes with names of the language", async () => {
    const { fault } = await sandbox.inspect("let undefined", "script.js", []);
    assert.deepEqual(fault, {
      kind: "error",
      message: "SyntaxError: 'undefined' already declared (line 1, column 14)",
      line: 1,
      column: 14,
    });
  });

  test("finds declared functions", async () => {
    const inspect = async (source: string): Promise<unknown> =>
      (await sandbox.inspect(source, "script.js", ["run", "other", "third"])).functions;
    assert.deepEqual(await inspect("function run() {} async function other() {} const third = () => 1"), [
      "run",
      "other",
      "third",
    ]);
    assert.deepEqual(await inspect("'use strict'; function run() {}"), ["run"]);
    assert.deepEqual(await inspect("#!/usr/bin/env node\nfunction run() {}"), ["run"]);
    assert.deepEqual(await inspect("const data = { run() {} }; { let other = () => 1 }"), []);
    assert.deepEqual(await inspect(""), []);
  });

  test("runs nothing", async () => {
    for (const source of [
      "for (;;);",
      "new Array(1e8).join('xx')",
      "class A { static { for (;;); } }",
      "const [a = (() => { for (;;); })()] = []",
      "function run() {} Object.defineProperty(globalThis, 'other', { get() { for (;;); } })",
      "var run = function () {}(); for (;;);",
      "throw new Error('no')",
      "`${(() => { for (;;); })()}`",
      "for (const a of (function* () { for (;;); })());",
    ]) {
      const startedMs = performance.now();
      const { fault } = await sandbox.inspect(source, "script.js", ["run", "other"]);
      assert.equal(fault, undefined, source);
      assert.ok(performance.now() - startedMs < 2000, source);
    }
  });

  test("survives sources that are hard to parse", async () => {
    for (const source of [
      "(".repeat(1e6),
      "[".repeat(1e5),
      "`${".repeat(1e5),
      "!".repeat(1e6),
      "a=>".repeat(1e5),
      `"${"\\u{1F600}".repeat(1e5)}"`,
    ]) {
      await sandbox.inspect(source, "script.js", ["run"]);
      assert.deepEqual((await sandbox.inspect("function run() {}", "script.js", ["run"])).functions, ["run"]);
    }
  });

  test("reports a fault of loading with its position", async () => {
    const fault = await sandbox.load(program("\n  missing();"));
    assert.deepEqual([fault?.kind, fault?.line, fault?.column], ["error", 2, 3]);
    const { fault: called } = await sandbox.call("guest", "run", [], 5000);
    assert.equal(called?.message, fault?.message);
  });
});

describe("the end", () => {
  test("fails pending calls, and all that follow", async () => {
    const ending = createSandbox({ prelude: PRELUDE, maxThreads: 2, threadName: "sandbox-test" });
    await ending.load(program(`function run() { for (;;); } ${OTHER}`));
    const pending = [ending.call("guest", "run", [], 60_000), ending.call("guest", "other", [], 60_000)];
    const loading = ending.load(program(OTHER, { key: "late" }));
    await ending.close();
    for (const outcome of await Promise.all(pending)) assert.equal(outcome.fault?.kind, "crash");
    assert.equal((await loading)?.kind, "crash");
    assert.equal((await ending.call("guest", "other", [], 1000)).fault?.kind, "crash");
    assert.equal((await ending.load(program(OTHER, { key: "new" })))?.kind, "crash");
    assert.equal((await ending.inspect("", "script.js", [])).fault?.kind, "crash");
    ending.unload("guest");
    await ending.close();
  });

  test("of a guest makes its calls fail", async () => {
    await sandbox.load(program(OTHER, { key: "short" }));
    sandbox.unload("short");
    sandbox.unload("unknown");
    assert.equal(shown(await sandbox.call("short", "other", [], 1000)), "crash: The guest is not loaded");
  });

  test("a function that the source does not have returns nothing", async () => {
    await sandbox.load(program(`const run = 5; let other;`));
    for (const name of ["run", "other"]) {
      assert.deepEqual(await sandbox.call("guest", name, [], 1000), { durationMs: 0, values: [], console: [] });
    }
  });
});
