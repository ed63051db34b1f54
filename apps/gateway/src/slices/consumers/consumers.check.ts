// Tested by ../../../test/consumers.test.ts
import type { ConfigDocument } from "@headworks/gateway-contract";
import type { CheckScope, IssueReport } from "#slice.ts";
import { credentialsOf } from "./consumer-identity.ts";
import { digestOfText } from "./credential-digest.ts";

/** What fields can carry (RFC 9110 section 5.5) of text that is sent as UTF-8: no controls, no space at the ends. */
const SENDABLE = /^[^\x00-\x20\x7f](?:[^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?$/;
/** Upstreams read names from `X-Consumer-Name`, and agree only about ASCII. */
const NAME = /^[!-~](?:[ -~]*[!-~])?$/;

/** Every credential can be presented and leads to one consumer. No message tells a secret. */
export function checkConsumers(document: ConfigDocument, report: IssueReport, scope: CheckScope): void {
  for (const [at, { name }] of document.consumers.entries()) {
    if (NAME.test(name)) continue;
    const message = `The consumer's name is sent to upstreams in X-Consumer-Name, so it must be visible ASCII`;
    report.error("bad_value", ["consumers", at, "name"], message);
  }
  checkApiKeys(document, report, scope);
}

function checkApiKeys(document: ConfigDocument, report: IssueReport, scope: CheckScope): void {
  const owners = new Map<string, string>();
  for (const { consumer, credential, place } of credentialsOf(document.consumers, "api_key")) {
    const key = scope.secret(credential.key)?.reveal();
    if (key === undefined) continue;
    if (!SENDABLE.test(key)) {
      const message = `An API key of "${consumer.name}" has control characters, or space at its ends: no header can carry it`;
      report.error("bad_value", [...place, "key"], message);
    }
    const selector = digestOfText(key).toString("hex");
    const owner = owners.get(selector);
    owners.set(selector, owner ?? consumer.name);
    if (owner === undefined) continue;
    if (owner === consumer.name) {
      report.warning("duplicate_credential", [...place, "key"], `"${owner}" has this API key twice`);
    } else {
      const message = `"${consumer.name}" has the same API key as "${owner}", so a request would be either's`;
      report.error("duplicate_credential", [...place, "key"], message);
    }
  }
}
