import { hash } from "node:crypto";
import { ownText } from "@headworks/http1";
import type { RequestContext } from "#request/context.ts";
import { resourceKey } from "./cache-rules.ts";

/** Methods after which a resource is as before (RFC 9110, 9.2.1). */
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
const MAX_RESOURCES = 10_000;
/** A resource with a longer name is remembered by its digest: clients choose the names. */
const MAX_NAME_LENGTH = 256;

/**
 * Remembers which resources a request may have changed (RFC 9111, 4.4), by counting changes: an answer that was asked for
 * before the last change of its resource is not given any more. Bounded; when too many are remembered, answers that were asked
 * for until now count as changed.
 */
export class ChangedResources {
  readonly #maxResources: number;
  /** The number of its last change, by resource. */
  readonly #changes = new Map<string, number>();
  #count = 0;
  /** Changes up to this one may be of any resource. */
  #forgotten = 0;

  constructor(maxResources = MAX_RESOURCES) {
    this.#maxResources = maxResources;
  }

  /** How many changes there were; to be kept with an answer that is asked for now. */
  get count(): number {
    return this.#count;
  }

  /** An answer of this status was given to a request. */
  answered(request: RequestContext, status: number): void {
    // An error says that nothing was done.
    if (SAFE.has(request.method) || status < 200 || status > 399) return;
    this.#count += 1;
    if (this.#changes.size >= this.#maxResources) {
      this.#changes.clear();
      this.#forgotten = this.#count;
    }
    this.#changes.set(resourceOf(request), this.#count);
  }

  /** Whether what was asked for when there were so many changes may be different by now. */
  hasChanged(request: RequestContext, askedCount: number): boolean {
    if (askedCount === this.#count) return false;
    return askedCount < this.#forgotten || askedCount < (this.#changes.get(resourceOf(request)) ?? 0);
  }
}

function resourceOf(request: RequestContext): string {
  const name = resourceKey(request);
  return name.length > MAX_NAME_LENGTH ? hash("sha256", name) : ownText(name);
}
