import { EvalFlags, JSException, QuickJS, type JSValueHandle } from "quickjs-wasi";
import { ConsoleLines, hostFunctions, OutOfGuestMemory, stringOf } from "./host-functions.ts";
import type { GuestFault, GuestOutcome, GuestProgram, GuestValue, SourceFacts } from "./sandbox.ts";

/** Compiling and the prelude are ours; a limit guards against mistakes only. */
const PREPARE_MS = 5000;
const INSPECT_BYTES = 64 * 1_048_576;
const MAX_RESULTS = 8;
/** Faults are kept with each call. */
const MAX_MESSAGE_LENGTH = 2000;
/** Leaves V8's own stack room for the calls between interpreter and host. */
const MAX_STACK_BYTES = 256 * 1024;

export interface CallLimit {
  readonly timeoutMs: number;
  readonly remainingMs: number;
}

/** One interpreter with one program. */
export interface Guest {
  /** `remainingMs` of `timeoutMs` are left. Calls of functions that the guest does not have return nothing. */
  call(name: string, args: readonly GuestValue[], limit: CallLimit): GuestOutcome;
  dispose(): void;
}

/** Starts an interpreter and runs the top level of the program. */
export async function createGuest(
  wasm: WebAssembly.Module,
  prelude: string,
  program: GuestProgram,
  values: Map<string, string>,
): Promise<Guest | { readonly fault: GuestFault }> {
  let guest: InterpretedGuest | undefined;
  const time = new TimeLimit();
  try {
    const vm = await QuickJS.create({
      wasm,
      memoryLimit: program.memoryLimitBytes,
      maxStackSize: MAX_STACK_BYTES,
      interruptHandler: () => time.isOver,
    });
    guest = new InterpretedGuest(vm, time, program, values);
    guest.start(prelude);
    return guest;
  } catch (error) {
    const fault = withLimit(faultFrom(error, program, time), program.timeoutMs, program.memoryLimitBytes);
    guest?.dispose();
    return { fault };
  }
}

/** Ends a source before its first statement: what is parsed and declared is known then, and nothing has run. */
const STOP = "throw 0;";
/** Positions in such code are not shown. */
const INTERNAL = "weir:internal";

/** The syntax error of a source, or which of the functions it declares. */
export async function inspectSource(
  wasm: WebAssembly.Module,
  source: string,
  filename: string,
  functions: readonly string[],
): Promise<SourceFacts> {
  const time = new TimeLimit();
  const vm = await QuickJS.create({ wasm, memoryLimit: INSPECT_BYTES, interruptHandler: () => time.isOver });
  const failure = (code: string, name = INTERNAL, flags?: number): unknown => {
    try {
      vm.evalCode(code, name, flags).dispose();
      return undefined;
    } catch (error) {
      return error;
    }
  };
  const nameOf = (error: unknown): string => (error instanceof JSException && error.handle.isObject ? error.name : "");
  try {
    time.start(PREPARE_MS);
    const invalid =
      failure(source, filename, EvalFlags.COMPILE_ONLY) ?? unlessStopped(failure(STOP + source.replace(/^#!/, "//")));
    if (invalid !== undefined) {
      const fault = faultFrom(invalid, { source, filename }, time);
      return { fault: withLimit(fault, PREPARE_MS, INSPECT_BYTES), functions: [] };
    }
    // Functions in `const` and `let` are not initialized yet, which a reference reports.
    const declared = functions.filter((name) => {
      const error = failure(`if (typeof ${name} !== "function") throw 0;`);
      return error === undefined || nameOf(error) === "ReferenceError";
    });
    return { functions: declared };
  } finally {
    vm.dispose();
  }
}

/** Declarations that clash with a global name are found when the source begins to run. */
function unlessStopped(error: unknown): unknown {
  return error instanceof JSException && !error.handle.isObject ? undefined : error;
}

class TimeLimit {
  #endMs = Number.POSITIVE_INFINITY;

  get isOver(): boolean {
    return performance.now() > this.#endMs;
  }

  start(limitMs: number): void {
    this.#endMs = performance.now() + limitMs;
  }

  stop(): void {
    this.#endMs = Number.POSITIVE_INFINITY;
  }
}

class InterpretedGuest implements Guest {
  readonly #vm: QuickJS;
  readonly #time: TimeLimit;
  readonly #program: GuestProgram;
  readonly #values: Map<string, string>;
  readonly #console = new ConsoleLines();
  readonly #functions = new Map<string, { readonly name: JSValueHandle; readonly value: JSValueHandle }>();
  #invoke: JSValueHandle | undefined;
  #settled: JSValueHandle | undefined;
  #changedValues: Record<string, string | null> | undefined;

  constructor(vm: QuickJS, time: TimeLimit, program: GuestProgram, values: Map<string, string>) {
    this.#vm = vm;
    this.#time = time;
    this.#program = program;
    this.#values = values;
  }

  /** Throws what the prelude or the source throws. */
  start(prelude: string): void {
    const { source, filename, functions, timeoutMs } = this.#program;
    const vm = this.#vm;
    this.#time.start(PREPARE_MS);
    const setUp = vm.evalCode(prelude, "weir:prelude");
    const host = hostFunctions(vm, this.#console, this.#values, (key, value) => {
      (this.#changedValues ??= Object.create(null) as Record<string, string | null>)[key] = value;
    });
    const made = vm.callFunction(setUp, vm.undefined, host);
    this.#invoke = made.getProp("invoke");
    this.#settled = made.getProp("settled");
    for (const handle of [setUp, host, made]) handle.dispose();
    this.#time.start(timeoutMs);
    vm.evalCode(source, filename).dispose();
    vm.executePendingJobs();
    for (const name of functions) {
      // Also finds functions of `const` and `let`, which are no properties of the global object.
      const value = vm.evalCode(`typeof ${name} === "function" ? ${name} : undefined`, INTERNAL);
      if (value.isFunction) this.#functions.set(name, { name: vm.newString(name), value });
      else value.dispose();
    }
    this.#time.stop();
  }

  call(name: string, args: readonly GuestValue[], { timeoutMs, remainingMs }: CallLimit): GuestOutcome {
    const fn = this.#functions.get(name);
    if (fn === undefined) return { durationMs: 0, values: [], console: [] };
    this.#console.clear();
    this.#changedValues = undefined;
    const startedMs = performance.now();
    this.#time.start(remainingMs);
    let values: readonly GuestValue[] = [];
    let fault: GuestFault | undefined;
    try {
      values = this.#run(fn, args);
    } catch (error) {
      fault = faultFrom(error, this.#program, this.#time);
      if (error instanceof JSException) forget(this.#vm, error);
    }
    this.#time.stop();
    return {
      durationMs: performance.now() - startedMs,
      values,
      ...(fault === undefined ? {} : { fault: withLimit(fault, timeoutMs, this.#program.memoryLimitBytes) }),
      console: this.#console.lines,
      ...(this.#changedValues === undefined ? {} : { changedValues: this.#changedValues }),
    };
  }

  dispose(): void {
    try {
      this.#vm.dispose();
    } catch {
      // An interpreter that trapped cannot clean up; its memory goes with the instance.
    }
  }

  #run(fn: { readonly name: JSValueHandle; readonly value: JSValueHandle }, args: readonly GuestValue[]): GuestValue[] {
    const vm = this.#vm;
    const handles = args.map((arg) => this.#handleOf(arg));
    let result: JSValueHandle | undefined;
    try {
      try {
        result = vm.callFunction(this.#invoke as JSValueHandle, vm.undefined, fn.value, fn.name, ...handles);
      } finally {
        // Also of calls that do not wait for their jobs, which would pile up.
        vm.executePendingJobs();
      }
      if (result.isUndefined) result = vm.callFunction(this.#settled as JSValueHandle, vm.undefined);
      return valuesOf(result);
    } finally {
      result?.dispose();
      for (const handle of handles) if (handle !== vm.null) handle.dispose();
    }
  }

  #handleOf(value: GuestValue): JSValueHandle {
    if (value === null) return this.#vm.null;
    const handle = typeof value === "string" ? this.#vm.newString(value) : this.#vm.newUint8Array(value);
    if (!handle.isString && !handle.isObject) throw new OutOfGuestMemory();
    return handle;
  }
}

function valuesOf(result: JSValueHandle): GuestValue[] {
  if (!result.isArray) return [valueOf(result)];
  const values: GuestValue[] = [];
  for (let at = 0; at < Math.min(result.length, MAX_RESULTS); at += 1) {
    const item = result.getProp(String(at));
    values.push(valueOf(item));
    item.dispose();
  }
  return values;
}

function valueOf(handle: JSValueHandle): GuestValue {
  if (handle.isString) return stringOf(handle);
  if (handle.isNull || handle.isUndefined) return null;
  return handle.toUint8Array();
}

/** Never throws, whatever was thrown: the guest chooses what it throws. */
function faultFrom(error: unknown, program: Pick<GuestProgram, "source" | "filename">, time: TimeLimit): GuestFault {
  if (error instanceof OutOfGuestMemory) return { kind: "memory", message: "" };
  if (!(error instanceof JSException)) {
    // What ends a job of a promise has no handle.
    if (time.isOver) return { kind: "timeout", message: "" };
    const text = String(error);
    if (/InternalError: out of memory$|^Error: wasm_malloc failed$/.test(text)) return { kind: "memory", message: "" };
    // Recursion in native functions overflows the stack of V8 itself.
    const isStack = error instanceof RangeError;
    return { kind: "crash", message: isStack ? "RangeError: the script recursed too deeply" : cut(text) };
  }
  try {
    const { name, message } = error;
    if (name === "InternalError" && message === "interrupted") return { kind: "timeout", message: "" };
    if (name === "InternalError" && message === "out of memory") return { kind: "memory", message: "" };
    // Also a getter of what was thrown can take all the time.
    if (time.isOver) return { kind: "timeout", message: "" };
    if (!error.handle.isObject) return { kind: "error", message: `The script threw ${primitiveText(error.handle)}` };
    if (name === UNREADABLE || message === UNREADABLE) return { kind: "error", message: NOT_SHOWN };
    return positioned(cut(`${name}: ${message}`), error.stack ?? "", program);
  } catch {
    return { kind: "crash", message: NOT_SHOWN };
  }
}

/** What the library reads from a member that throws or is a symbol. */
const UNREADABLE = "<null>";
const NOT_SHOWN = "The script threw a value that cannot be shown";

function positioned(
  message: string,
  stack: string,
  { source, filename }: Pick<GuestProgram, "source" | "filename">,
): GuestFault {
  const found = new RegExp(`${RegExp.escape(filename)}:(\\d{1,7}):(\\d{1,7})`).exec(stack);
  if (found === null) return { kind: "error", message };
  const line = Number(found[1]);
  const column = columnOf(source, line, Number(found[2]));
  return { kind: "error", message: `${message} (line ${line}, column ${column})`, line, column };
}

/** The interpreter counts columns in octets of UTF-8. */
function columnOf(source: string, line: number, octetColumn: number): number {
  const text = source.split("\n", line)[line - 1] ?? "";
  return (
    Buffer.from(text, "utf8")
      .subarray(0, octetColumn - 1)
      .toString("utf8").length + 1
  );
}

function cut(text: string): string {
  return text.length > MAX_MESSAGE_LENGTH ? `${text.slice(0, MAX_MESSAGE_LENGTH)}…` : text;
}

function primitiveText(handle: JSValueHandle): string {
  if (handle.isSymbol) return "a symbol";
  const text = cut(handle.toString());
  return handle.isString ? JSON.stringify(text) : text;
}

/** Releases an error. The library keeps the handles of all errors until the end of the interpreter. */
function forget(vm: QuickJS, error: JSException): void {
  try {
    (vm as unknown as { readonly _ownedHandles: Set<JSValueHandle> })._ownedHandles.delete(error.handle);
    error.dispose();
  } catch {
    // The interpreter is thrown away.
  }
}

function withLimit(fault: GuestFault, timeoutMs: number, memoryLimitBytes: number): GuestFault {
  if (fault.message !== "") return fault;
  const message =
    fault.kind === "timeout"
      ? `The script took longer than ${Math.round(timeoutMs)} ms`
      : `The script used more than ${Math.round(memoryLimitBytes / 1_048_576)} MiB of memory`;
  return { ...fault, message };
}
