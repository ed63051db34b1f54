// Tested by ../../../test/consumers.test.ts
import type { ConsumerIdentity, RequestContext } from "#request/context.ts";
import type { Gate, Refusal, Verdict } from "#request/phases.ts";
import { type PresentedCredentials, presentedCredentials } from "./presented-credentials.ts";

/** What came of a credential. `none`: it is not for the gateway, and is passed on. */
export type Recognition =
  | { readonly kind: "consumer"; readonly identity: ConsumerIdentity }
  | { readonly kind: "invalid" }
  /** Whether it is good cannot be told now. */
  | { readonly kind: "unavailable" }
  | { readonly kind: "none" };

/** A way to present a credential. */
export interface CredentialReader {
  /** Looks at what was presented; a promise only where something has to be waited for. */
  read(request: RequestContext, presented: PresentedCredentials): Recognition | Promise<Recognition>;
  /** Lower-case names of the fields to keep from the upstream when this reader recognised the request. */
  readonly hides: ReadonlySet<string> | undefined;
}

/** What certificates say; asked only where no field says anything. */
export interface PeerReader {
  read(request: RequestContext): Recognition;
}

/** How a generation recognises consumers. */
export interface Authentication {
  /** In the order of precedence: the first that is presented decides. */
  readonly readers: readonly CredentialReader[];
  readonly certificates: PeerReader | undefined;
  readonly unauthorized: Refusal;
}

const UNAVAILABLE: Refusal = { code: "authentication_unavailable" };

/**
 * Finds out who sends a request. A credential that is presented must be good, also where none is asked for; without one
 * the client is anonymous, which a route may refuse.
 */
export class AuthenticationGate implements Gate {
  readonly #authentication: Authentication;
  readonly #isRequired: boolean;

  constructor(authentication: Authentication, isRequired: boolean) {
    this.#authentication = authentication;
    this.#isRequired = isRequired;
  }

  check(request: RequestContext): Verdict | Promise<Verdict> {
    const presented = presentedCredentials(request.fields);
    return presented === undefined ? this.#askPeer(request) : this.#ask(request, presented);
  }

  #ask(request: RequestContext, presented: PresentedCredentials): Verdict | Promise<Verdict> {
    for (const reader of this.#authentication.readers) {
      const recognition = reader.read(request, presented);
      if (recognition instanceof Promise) return this.#later(request, reader, recognition);
      if (recognition.kind !== "none") return this.#verdict(request, reader, recognition);
    }
    return this.#askPeer(request);
  }

  async #later(request: RequestContext, reader: CredentialReader, later: Promise<Recognition>): Promise<Verdict> {
    return this.#verdict(request, reader, await later);
  }

  #askPeer(request: RequestContext): Verdict {
    const { certificates, unauthorized } = this.#authentication;
    const recognition = certificates?.read(request);
    if (recognition !== undefined && recognition.kind !== "none") {
      return this.#verdict(request, undefined, recognition);
    }
    return this.#isRequired ? unauthorized : undefined;
  }

  #verdict(request: RequestContext, reader: CredentialReader | undefined, recognition: Recognition): Verdict {
    switch (recognition.kind) {
      case "consumer":
        request.consumer = recognition.identity;
        request.credentialFields = reader?.hides;
        return undefined;
      case "unavailable":
        return UNAVAILABLE;
      default:
        return this.#authentication.unauthorized;
    }
  }
}
