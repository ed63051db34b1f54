import { JSException, QuickJS, type JSValueHandle } from "quickjs-wasi";
import { ConsoleLines, hostFunctions } from "./host-functions.ts";
import type { GuestFault, GuestOutcome, GuestProgram, GuestValue, SourceFacts } from "./sandbox.ts";

/** Compiling and the prelude are ours; a limit guards against mistakes only. */
const PREPARE_MS = 5000;
const INSPECT_BYTES = 64 * 1_048_576;
const MAX_RESULTS = 8;
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
  try {
    const time = new TimeLimit();
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
    const fault = withLimit(faultFrom(error, program.filename), program.timeoutMs, program.memoryLimitBytes);
    guest?.dispose();
    return { fault };
  }
}

/** Ends a source before its first statement: what is parsed and declared is known then, and nothing has run. */
const STOP = "throw 0;";

/** The syntax error of a source, or which of the functions it declares. */
export async function inspectSource(
  wasm: WebAssembly.Module,
  source: string,
  filename: string,
  functions: readonly string[],
): Promise<SourceFacts> {
  const time = new TimeLimit();
  const vm = await QuickJS.create({ wasm, memoryLimit: INSPECT_BYTES, interruptHandler: () => time.isOver });
  const failure = (code: string): unknown => {
    try {
      vm.evalCode(code, filename).dispose();
      return undefined;
    } catch (error) {
      return error;
    }
  };
  const nameOf = (error: unknown): string => (error instanceof JSException && error.handle.isObject ? error.name : "");
  try {
    time.start(PREPARE_MS);
    const stopped = failure(STOP + source);
    if (!(stopped instanceof JSException) || stopped.handle.isObject) {
      return { fault: inSource(faultFrom(stopped, filename)), functions: [] };
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

/** A fault of the stopped source, with its position in the source itself. */
function inSource(fault: GuestFault): GuestFault {
  const { message, line, column } = fault;
  if (line !== 1 || column === undefined) return fault;
  const own = Math.max(1, column - STOP.length);
  return { ...fault, column: own, message: message.replace(`column ${String(column)}`, `column ${String(own)}`) };
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
      (this.#changedValues ??= {})[key] = value;
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
      const value = vm.evalCode(`typeof ${name} === "function" ? ${name} : undefined`, "weir:lookup");
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
      fault = faultFrom(error, this.#program.filename);
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
      result = vm.callFunction(this.#invoke as JSValueHandle, vm.undefined, fn.value, fn.name, ...handles);
      if (result.isUndefined) {
        vm.executePendingJobs();
        result = vm.callFunction(this.#settled as JSValueHandle, vm.undefined);
      }
      return valuesOf(result);
    } finally {
      result?.dispose();
      for (const handle of handles) if (handle !== vm.null) handle.dispose();
    }
  }

  #handleOf(value: GuestValue): JSValueHandle {
    if (value === null) return this.#vm.null;
    return typeof value === "string" ? this.#vm.newString(value) : this.#vm.newUint8Array(value);
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
  if (handle.isString) return handle.toString();
  if (handle.isNull || handle.isUndefined) return null;
  return handle.toUint8Array();
}

/** Never throws, whatever was thrown: the guest chooses what it throws. */
function faultFrom(error: unknown, filename: string): GuestFault {
  if (!(error instanceof JSException)) {
    // Recursion in native functions overflows the stack of V8 itself.
    const isStack = error instanceof RangeError;
    return { kind: "crash", message: isStack ? "RangeError: the script recursed too deeply" : String(error) };
  }
  try {
    const { name, message } = error;
    if (message === "interrupted") return { kind: "timeout", message: "" };
    if (message === "out of memory") return { kind: "memory", message: "" };
    const [, line, column] = new RegExp(`${RegExp.escape(filename)}:(\\d+):(\\d+)`).exec(error.stack ?? "") ?? [];
    const text = error.handle.isObject ? `${name}: ${message}` : `The script threw ${primitiveText(error.handle)}`;
    if (line === undefined) return { kind: "error", message: text };
    return {
      kind: "error",
      message: `${text} (line ${line}, column ${column ?? "1"})`,
      line: Number(line),
      column: Number(column),
    };
  } catch {
    return { kind: "crash", message: "The script threw something that cannot be shown" };
  } finally {
    dispose(error);
  }
}

function primitiveText(handle: JSValueHandle): string {
  if (handle.isSymbol) return "a symbol";
  return handle.isString ? JSON.stringify(handle.toString().slice(0, 1000)) : handle.toString();
}

function dispose(error: JSException): void {
  try {
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
