import { hash } from "node:crypto";
import { ownText } from "@headworks/http1";
import type { RequestContext } from "#request/context.ts";
import { resourceKey } from "./cache-rules.ts";

/** Safe methods (RFC 9110, 9.2.1). */
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
const MAX_RESOURCES = 10_000;
/** Longer names are stored as digests, since clients choose them. */
const MAX_NAME_LENGTH = 256;

/**
 * Invalidation (RFC 9111, 4.4): numbers changes by unsafe methods; a response requested before the last change of its
 * resource is not reused. Bounded; on overflow, all responses requested so far count as changed.
 */
export class ChangedResources {
  readonly #maxResources: number;
  readonly #changes = new Map<string, number>();
  #count = 0;
  /** Changes up to this number may be of any resource. */
  #forgotten = 0;

  constructor(maxResources = MAX_RESOURCES) {
    this.#maxResources = maxResources;
  }

  /** Total number of changes, to be stored with a response requested now. */
  get count(): number {
    return this.#count;
  }

  /** Registers the response status of a request. */
  answered(request: RequestContext, status: number): void {
    // Errors change nothing.
    if (SAFE.has(request.method) || status < 200 || status > 399) return;
    this.#count += 1;
    if (this.#changes.size >= this.#maxResources) {
      this.#changes.clear();
      this.#forgotten = this.#count;
    }
    this.#changes.set(resourceOf(request), this.#count);
  }

  /** True if the resource may have changed since the total was `countAtRequest`. */
  hasChanged(request: RequestContext, countAtRequest: number): boolean {
    if (countAtRequest === this.#count) return false;
    return countAtRequest < this.#forgotten || countAtRequest < (this.#changes.get(resourceOf(request)) ?? 0);
  }
}

function resourceOf(request: RequestContext): string {
  const name = resourceKey(request);
  return name.length > MAX_NAME_LENGTH ? hash("sha256", name) : ownText(name);
}
