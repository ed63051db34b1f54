import type { ConfigDocument, Deprecation, Route } from "@headworks/gateway-contract";
import { formatLink, parseImfFixdate } from "@headworks/http-fields";
import { removeField } from "@headworks/http1";
import type { Decorator } from "#request/context.ts";
import type { CheckScope, GatewaySlice, IssueReport } from "#slice.ts";

/** An absolute URL without characters that could end the link or the header. */
const LINKABLE = /^https?:\/\/[^/?#]+[!-~]*$/i;

/** Sends `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and a link on responses of the route's action. */
export const deprecation: GatewaySlice = {
  name: "deprecation",
  check: checkDeprecation,
  compile: () => ({ decoratorFor }),
};

function decoratorFor(route: Route): Decorator | undefined {
  if (route.deprecation === undefined) return undefined;
  const added = headerFields(route.deprecation);
  return {
    on: "action-responses",
    decorate: (_request, head) => {
      // Replaces all upstream fields: a mixture could be contradictory.
      removeField(head.fields, "deprecation");
      removeField(head.fields, "sunset");
      // Appended, so that the link follows all upstream links.
      head.fields.push(...added);
    },
  };
}

/** The dates have been validated. */
function headerFields({ since, sunset, uri }: Deprecation): readonly string[] {
  const date = since === undefined ? undefined : parseImfFixdate(since);
  return [
    ...(date?.kind === "date" ? ["Deprecation", `@${date.epochS}`] : []),
    ...(sunset === undefined ? [] : ["Sunset", sunset]),
    ...(uri === undefined ? [] : ["Link", formatLink(uri, "deprecation")]),
  ];
}

type FieldPath = readonly (string | number)[];

/** Compares dates with the clock at the time of the check. */
function checkDeprecation(document: ConfigDocument, report: IssueReport, scope: CheckScope): void {
  for (const [index, { deprecation }] of document.routes.entries()) {
    if (deprecation !== undefined) {
      checkBlock(deprecation, ["routes", index, "deprecation"], report, scope.clock.now());
    }
  }
}

function checkBlock(block: Deprecation, fieldPath: FieldPath, report: IssueReport, nowMs: number): void {
  if (block.since === undefined && block.sunset === undefined) {
    report.error("deprecation_empty", fieldPath, "A deprecation block needs since, sunset or both");
  }
  const sinceS = readDate(block.since, [...fieldPath, "since"], report);
  const sunsetS = readDate(block.sunset, [...fieldPath, "sunset"], report);
  if (sinceS !== undefined && sinceS < 0) {
    const message = "since is before 1970, which the Deprecation header cannot express";
    report.error("since_before_epoch", [...fieldPath, "since"], message);
  }
  if (sunsetS !== undefined && sunsetS * 1000 < nowMs) {
    const message = `sunset is past: it is ${new Date(nowMs).toUTCString()} now; set a later date, or remove the route`;
    report.error("sunset_past", [...fieldPath, "sunset"], message);
  }
  if (sinceS !== undefined && sunsetS !== undefined && sunsetS < sinceS) {
    const message = "sunset is before since; a version cannot end before it is deprecated";
    report.error("sunset_before_since", [...fieldPath, "sunset"], message);
  }
  if (block.uri !== undefined) checkUri(block.uri, block.since, [...fieldPath, "uri"], report);
}

/** Unix seconds; undefined for an absent or invalid date; the latter is reported. */
function readDate(text: string | undefined, fieldPath: FieldPath, report: IssueReport): number | undefined {
  if (text === undefined) return undefined;
  const date = parseImfFixdate(text);
  if (date.kind === "date") return date.epochS;
  const field = String(fieldPath.at(-1));
  if (date.kind === "malformed") {
    const message = `${field} must be a date like "Sun, 06 Nov 1994 08:49:37 GMT", with the weekday and in GMT`;
    report.error("date_not_imf_fixdate", fieldPath, message);
  } else {
    const message = `${field} names the wrong day of the week: that date is a ${date.weekday}`;
    report.error("date_weekday_mismatch", fieldPath, message);
  }
  return undefined;
}

function checkUri(uri: string, since: string | undefined, fieldPath: FieldPath, report: IssueReport): void {
  if (since === undefined) {
    report.error("uri_without_since", fieldPath, "uri needs since: the link belongs to the Deprecation header");
  }
  if (!LINKABLE.test(uri) || !/^[!-~]+$/.test(uri) || /[<>"]/.test(uri) || !URL.canParse(uri)) {
    const message = 'uri must be an absolute http or https URL without spaces, <, > and "';
    report.error("bad_url", fieldPath, message);
  }
}
