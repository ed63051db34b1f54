import { readFileSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { serveRequests, type ThreadReply } from "@headworks/worker-host";
import { createGuest, type Guest, inspectSource } from "./guest.ts";
import type { GuestFault, GuestOutcome, GuestProgram, SandboxReply, SandboxRequest } from "./sandbox.ts";

const { prelude } = workerData as { readonly prelude: string };
const wasm = new WebAssembly.Module(readFileSync(new URL(import.meta.resolve("quickjs-wasi/quickjs.wasm"))));

interface Loaded {
  readonly program: GuestProgram;
  /** The guest's store; it survives the interpreter. */
  readonly values: Map<string, string>;
  /** Undefined after a fault that the interpreter may not have survived. */
  guest: Guest | undefined;
  fault: GuestFault | undefined;
}

const loaded = new Map<string, Loaded>();

async function start(entry: Loaded): Promise<void> {
  const created = await createGuest(wasm, prelude, entry.program, entry.values);
  entry.guest = "fault" in created ? undefined : created;
  entry.fault = "fault" in created ? created.fault : undefined;
}

async function load(program: GuestProgram, isDeferred: boolean): Promise<SandboxReply> {
  loaded.get(program.key)?.guest?.dispose();
  const values = new Map(Object.entries(program.values));
  const entry: Loaded = { program, values, guest: undefined, fault: undefined };
  loaded.set(program.key, entry);
  if (!isDeferred) await start(entry);
  return { fault: entry.fault };
}

function unload(key: string): SandboxReply {
  loaded.get(key)?.guest?.dispose();
  loaded.delete(key);
  return { fault: undefined };
}

type CallRequest = Extract<SandboxRequest, { kind: "call" }>;

function call(request: CallRequest): ThreadReply<SandboxReply> | Promise<ThreadReply<SandboxReply>> {
  const entry = loaded.get(request.key);
  if (entry === undefined) return reply(failed({ kind: "crash", message: "The guest is not loaded" }));
  const remainingMs = request.deadlineMs - Date.now();
  if (remainingMs <= 0) {
    return reply(failed({ kind: "timeout", message: "The script's thread was busy until the timeout" }));
  }
  if (entry.guest !== undefined) return reply(run(entry, entry.guest, request, remainingMs));
  return start(entry).then(() => {
    if (entry.guest === undefined) return reply(failed(entry.fault ?? { kind: "crash", message: "The script ended" }));
    return reply(run(entry, entry.guest, request, request.deadlineMs - Date.now()));
  });
}

function run(entry: Loaded, guest: Guest, { name, args, timeoutMs }: CallRequest, remainingMs: number): GuestOutcome {
  const outcome = guest.call(name, args, { timeoutMs, remainingMs });
  if (outcome.fault === undefined || outcome.fault.kind === "error") return outcome;
  entry.guest = undefined;
  guest.dispose();
  return outcome;
}

function failed(fault: GuestFault): GuestOutcome {
  return { durationMs: 0, values: [], fault, console: [] };
}

function reply(value: SandboxReply): ThreadReply<SandboxReply> {
  return { value, transfer: [] };
}

serveRequests<SandboxRequest, SandboxReply>((request) => {
  switch (request.kind) {
    case "call":
      return call(request);
    case "load":
      return load(request.program, request.isDeferred === true).then(reply);
    case "unload":
      return reply(unload(request.key));
    case "inspect":
      return inspectSource(wasm, request.source, request.filename, request.functions).then(reply);
  }
});
