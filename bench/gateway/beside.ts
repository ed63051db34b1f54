import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { residentMb } from "../capture/processor-time.ts";
import type { Contender, Demand } from "./contenders.ts";
import type { Site } from "./site.ts";

/** An additional activity during the load of a round. */
export interface Beside {
  /** Shown after the gateway's name in the table. */
  readonly title: string;
  /** Ends with the load, and its cost counts. */
  readonly isLoad: boolean;
  readonly can: (contender: Contender) => boolean;
  /** Starts before the round and returns a stop function; `note` describes observations. */
  readonly start: (subject: Subject) => Promise<{ readonly stop: () => Promise<void>; readonly note?: string }>;
}

/** The affected gateway. */
export interface Subject {
  readonly contender: Contender;
  readonly pid: number;
  readonly port: number;
  readonly site: Site;
  readonly demand: Demand;
}

const RELOAD_EVERY_MS = 250;

/** A changed configuration four times a second. */
export const RELOADS: Beside = {
  title: "reloads",
  isLoad: true,
  can: ({ reload }) => reload !== undefined,
  start: async ({ contender, pid, port, site, demand }) => {
    let reloads = 0;
    const timer = setInterval(() => {
      reloads += 1;
      contender.reload?.({ site, port, demand, pid, count: reloads });
    }, RELOAD_EVERY_MS);
    return await Promise.resolve({ stop: async () => await Promise.resolve(clearInterval(timer)) });
  },
};

const IDLE_CONNECTIONS = 10_000;
/** Descriptors of a gateway for the load and its files, and of this program. */
const OTHER_DESCRIPTORS = 1000;
const AT_ONCE = 100;
const RESPONSE_TIMEOUT_MS = 5000;

/** Many idle client connections, after one request each. */
export function idleConnections(): Beside {
  const count = affordableConnections();
  return {
    title: `${count.toLocaleString("en")} idle`,
    isLoad: false,
    can: () => true,
    start: async ({ contender, pid, port }) => {
      const beforeMb = residentMb(pid).nowMb;
      const sockets: Socket[] = [];
      while (sockets.length < count) {
        const some = Array.from({ length: Math.min(AT_ONCE, count - sockets.length) }, async () => await visit(port));
        const visits = await Promise.all(some);
        sockets.push(...visits.filter((socket) => socket !== undefined));
        if (visits.includes(undefined)) break;
      }
      const kilobytes = ((residentMb(pid).nowMb - beforeMb) * 1024) / sockets.length;
      const lost = (): number => sockets.filter(({ readyState }) => readyState !== "open").length;
      return {
        note: `${kilobytes.toFixed(1)} KB more resident memory for each of ${sockets.length} idle connections`,
        stop: async () => {
          if (lost() > 0) console.log(`${contender.name} closed ${lost()} of ${sockets.length} idle connections`);
          const closed = sockets.map(async (socket) => {
            if (!socket.destroyed) await once(socket.destroy(), "close");
          });
          await Promise.all(closed);
        },
      };
    },
  };
}

/** Undefined if the gateway refuses further connections. */
async function visit(port: number): Promise<Socket | undefined> {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => undefined);
  socket.write("GET /200 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  try {
    await once(socket, "data", { signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) });
    return socket;
  } catch {
    socket.destroy();
    return undefined;
  }
}

/** Raises this process's descriptor limit, which gateways inherit, as far as the system allows. */
function affordableConnections(): number {
  const wanted = IDLE_CONNECTIONS + OTHER_DESCRIPTORS;
  if (openFilesLimit() < wanted) {
    const { status, stderr } = spawnSync("prlimit", [`--pid=${process.pid}`, `--nofile=${wanted}`], {
      encoding: "utf8",
    });
    if (status !== 0) console.log(`The limit of open files remains ${openFilesLimit()}: ${stderr.trim()}`);
  }
  return Math.min(IDLE_CONNECTIONS, openFilesLimit() - OTHER_DESCRIPTORS);
}

function openFilesLimit(): number {
  const soft = /^Max open files\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}
