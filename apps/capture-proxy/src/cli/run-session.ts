import { sessionsOperations } from "@headworks/capture-contract";
import type { CaptureSession } from "@headworks/capture-contract";
import { callJson, shownUrl } from "./api-connection.ts";
import type { ApiAddress } from "./api-connection.ts";
import { CommandFailure, EXIT } from "./exit-codes.ts";
import { visibleText } from "./terminal.ts";

// Tested by ../../test/cli-run-shared.test.ts

/** The session of one run in a service that others use too. */
export interface RunSession {
  readonly session: CaptureSession;
  /** Throws {@link CommandFailure} when another session is active: part of the run's traffic is there. */
  expectActive(signal: AbortSignal): Promise<void>;
  /** Makes the former session active again. */
  end(): Promise<void>;
}

/** The tag of a run's session while the run lasts. */
const RUNNING = "weir run";

/**
 * Makes a session for one run and makes it active. Throws {@link CommandFailure} while the active session is another
 * run's: a service has one active session, so each of the two would miss traffic or hold the other's.
 */
export async function beginRunSession(
  address: ApiAddress,
  name: string,
  before: CaptureSession | undefined,
): Promise<RunSession> {
  if (before?.tags.includes(RUNNING) === true) {
    throw new CommandFailure(
      EXIT.failure,
      `Another \`weir run\` has ${shown(before)} at ${shownUrl(address)} to itself: wait for its end, or start this one with --isolated. If that run was killed, \`weir sessions switch\` to another session`,
    );
  }
  const made = await newSession(address, name, [RUNNING]);
  return {
    session: made,
    expectActive: async (signal) => {
      if ((await currentSession(address, signal))?.id === made.id) return;
      throw new CommandFailure(
        EXIT.failure,
        `Another session became active at ${shownUrl(address)} during the run, so ${shown(made)} may lack some of its traffic`,
      );
    },
    end: async () => {
      const now = (await listSessions(address)).find(({ id }) => id === made.id);
      if (now === undefined) return;
      try {
        // Somebody may have chosen another session meanwhile; that choice stays.
        if (now.is_current && before !== undefined) await switchTo(address, before);
      } finally {
        // Last: a run that begins meanwhile would take this session for one that is to be active again.
        const tags = now.tags.filter((tag) => tag !== RUNNING);
        await callJson(address, sessionsOperations.updateSession, { params: { id: made.id }, body: { tags } });
      }
    },
  };
}

/** Makes a session with these tags, and makes it active. */
export async function newSession(
  address: ApiAddress,
  name: string,
  tags: readonly string[] = [],
): Promise<CaptureSession> {
  const { value } = await callJson(address, sessionsOperations.createSession, { body: { name } });
  const session = value as CaptureSession;
  if (tags.length > 0) {
    await callJson(address, sessionsOperations.updateSession, { params: { id: session.id }, body: { tags } });
  }
  await switchTo(address, session);
  return session;
}

/** The active session. */
export async function currentSession(address: ApiAddress, signal?: AbortSignal): Promise<CaptureSession | undefined> {
  return (await listSessions(address, signal)).find((session) => session.is_current);
}

async function listSessions(address: ApiAddress, signal?: AbortSignal): Promise<readonly CaptureSession[]> {
  const { value } = await callJson(address, sessionsOperations.listSessions, signal === undefined ? {} : { signal });
  return value as CaptureSession[];
}

async function switchTo(address: ApiAddress, { id }: CaptureSession): Promise<void> {
  await callJson(address, sessionsOperations.switchSession, { params: { id } });
}

const shown = ({ id, name }: CaptureSession): string => `the session ${JSON.stringify(visibleText(name ?? id))}`;
