import cluster, { type Worker } from "node:cluster";
import { fileURLToPath } from "node:url";
import { ProcessLink, type Batch, type Handlers } from "./process-link.ts";
import type { ControlCalls, WorkerCalls } from "./worker-calls.ts";

const ENTRY = fileURLToPath(new URL("./worker-process.ts", import.meta.url));

/** How a worker came to its end, in words. */
export type EndedListener = (how: string) => void;

/** A worker process, from the control process's side. */
export class WorkerHandle {
  readonly place: number;
  readonly link: ProcessLink<WorkerCalls, ControlCalls>;
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>;
  /** Number of the generation that runs there; 0 while it starts. */
  generation = 0;
  /** Waits for `publish` or `discard`. */
  isPrepared = false;
  /** Whether a signal ended it. */
  isKilled = false;
  readonly #worker: Worker;

  private constructor(place: number, worker: Worker, handlers: Handlers<ControlCalls>, ended: EndedListener) {
    this.place = place;
    this.#worker = worker;
    this.link = new ProcessLink<WorkerCalls, ControlCalls>((batch) => this.#send(batch), handlers);
    worker.on("message", (batch: Batch) => this.link.receive(batch));
    this.ended = new Promise((resolve) => {
      const end = (how: string): void => {
        this.link.lost(`The worker ended ${how}`);
        ended(how);
        resolve();
      };
      worker.once("exit", (code: number | null, signal: string | null) => {
        this.isKilled = signal !== null;
        end(signal === null ? `with exit code ${code}` : `by ${signal}`);
      });
      worker.on("error", (error: Error) => {
        // What the system gave no process never exits. All else that cannot be sent was for a process that is ending.
        if (worker.process.pid === undefined) end(`before it began: ${error.message}`);
      });
    });
  }

  /** Starts a process. Connections are taken by whichever worker has a turn: all listen on the same sockets. */
  static fork(place: number, handlers: Handlers<ControlCalls>, ended: EndedListener): WorkerHandle {
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    const execArgv = [...process.execArgv, "--disable-sigusr1"];
    cluster.setupPrimary({ exec: ENTRY, args: [], execArgv, serialization: "advanced" });
    return new WorkerHandle(place, cluster.fork(), handlers, ended);
  }

  get pid(): number | undefined {
    return this.#worker.process.pid;
  }

  get isRunning(): boolean {
    return this.generation > 0;
  }

  /** Ends it when it has nothing more to do; it ends by itself when the line to it is cut. */
  release(): void {
    if (this.#worker.process.connected) this.#worker.process.disconnect();
  }

  kill(): void {
    this.#worker.process.kill("SIGKILL");
  }

  #send(batch: Batch): void {
    if (this.#worker.process.connected) this.#worker.process.send(batch, () => undefined);
  }
}
