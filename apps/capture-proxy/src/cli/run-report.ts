import { exportOperations, trafficOperations } from "@headworks/capture-contract";
import type { TrafficEntry, TrafficSummary } from "@headworks/capture-contract";
import { callApi, callJson, shownUrl } from "./api-connection.ts";
import type { Invocation } from "./invocation.ts";
import { sizeText } from "./present-values.ts";
import { present } from "./present.ts";
import type { Capture } from "./run-capture.ts";
import type { RunOptions } from "./run-command.ts";
import { visibleText } from "./terminal.ts";
import { saveResponse } from "./transfer.ts";

/** Rows of the table of `--summary`. */
const SHOWN_ROWS = 1000;

/** Writes what a run captured where it was asked for; says on a terminal where it is. */
export async function reportRun(
  capture: Capture,
  options: RunOptions,
  invocation: Invocation,
  signal: AbortSignal,
): Promise<void> {
  const { stderr } = invocation;
  const isAsked = options.har !== undefined || options.summary === true;
  if (!isAsked && !stderr.isTty) return;
  if (!capture.hasOwnSession) {
    stderr.write(`${stderr.style("dim", `weir: captured${place(capture, options)}`)}\n`);
    return;
  }
  await capture.settle(signal);
  const query = { session_id: capture.sessionId };
  if (options.har !== undefined) {
    await saveResponse(
      await callApi(capture.address, exportOperations.exportHar, { query, signal }),
      options.har,
      invocation,
    );
  }
  const summary = (await callJson(capture.address, trafficOperations.summarizeTraffic, { query, signal }))
    .value as TrafficSummary;
  if (options.summary === true) {
    const { value } = await callJson(capture.address, trafficOperations.listTraffic, {
      query: { ...query, limit: SHOWN_ROWS },
      signal,
    });
    stderr.write(present((value as TrafficEntry[]).toReversed(), "TrafficEntry", stderr));
  }
  stderr.write(stderr.style("dim", `${totals(summary)}${place(capture, options)}`) + "\n");
}

function totals({ total, errors, request_bytes: sent, response_bytes: received }: TrafficSummary): string {
  const count = total === 1 ? "1 exchange" : `${total} exchanges`;
  const failures = errors === 0 ? "" : `, ${errors} with errors`;
  return `weir: ${count}${failures}, ${sizeText(sent)} sent, ${sizeText(received)} received`;
}

function place(capture: Capture, options: RunOptions): string {
  if (!capture.isOwn) {
    return `; session ${visibleText(capture.sessionName ?? capture.sessionId)} at ${shownUrl(capture.address)}`;
  }
  if (options.har !== undefined) return `; written to ${visibleText(options.har)}`;
  if (capture.isKept) return `; kept in ${visibleText(options.dataDir ?? "")}`;
  return options.summary === true ? "" : "; not kept (see --har, --summary, --data-dir, or start `weir serve`)";
}
