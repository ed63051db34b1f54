import type { RequestContext } from "#request/context.ts";
import type { Gate, Refusal, Verdict } from "#request/phases.ts";
import type { AuthenticationReports } from "./authentication-reports.ts";
import type { ClientCertificates } from "./client-certificates.ts";
import type { CredentialReader, Recognition } from "./credential-reader.ts";
import { type PresentedCredentials, presentedCredentials } from "./presented-credentials.ts";

/** The authenticators of a generation. */
export interface Authentication {
  /** In order of precedence: the first that claims the credentials decides. */
  readonly readers: readonly CredentialReader[];
  /** Used only without credential fields; undefined if no consumer has a certificate. */
  readonly certificates: ClientCertificates | undefined;
  /** True if upstreams receive valid credential fields. */
  readonly forwardsCredentials: boolean;
  readonly unauthorized: Refusal;
  readonly reports: AuthenticationReports;
}

const UNAVAILABLE: Refusal = { code: "authentication_unavailable" };
const NONE: ReadonlySet<string> = new Set();

/**
 * Identifies the consumer. Presented credentials must be valid even on public routes; without credentials the client is
 * anonymous, which a route may refuse.
 */
export class AuthenticationGate implements Gate {
  readonly #authentication: Authentication;
  readonly #isRequired: boolean;
  /** Fields withheld from upstreams, by index of the reader that recognized the request. */
  readonly #hidden: readonly ReadonlySet<string>[];
  readonly #everyField: ReadonlySet<string>;

  constructor(authentication: Authentication, isRequired: boolean) {
    this.#authentication = authentication;
    this.#isRequired = isRequired;
    this.#hidden = authentication.readers.map(({ fields, isForwarded }) =>
      isForwarded || authentication.forwardsCredentials ? NONE : new Set(fields),
    );
    this.#everyField = new Set(authentication.readers.flatMap(({ fields }) => fields));
  }

  check(request: RequestContext): Verdict | Promise<Verdict> {
    const presented = presentedCredentials(request.fields);
    return presented === undefined ? this.#askPeer(request) : this.#ask(request, presented);
  }

  #ask(request: RequestContext, presented: PresentedCredentials): Verdict | Promise<Verdict> {
    const { readers } = this.#authentication;
    for (let at = 0; at < readers.length; at++) {
      const reader = readers[at];
      if (reader?.claims(presented) !== true) continue;
      const hidden = this.#hiddenBy(at, presented);
      const recognition = reader.read(request, presented);
      return recognition instanceof Promise
        ? this.#later(request, recognition, hidden)
        : this.#verdict(request, recognition, hidden);
    }
    return this.#askPeer(request);
  }

  async #later(
    request: RequestContext,
    later: Promise<Recognition>,
    hidden: ReadonlySet<string> | undefined,
  ): Promise<Verdict> {
    return this.#verdict(request, await later, hidden);
  }

  #askPeer(request: RequestContext): Verdict {
    const { certificates, unauthorized } = this.#authentication;
    const { certificate } = request.peer;
    if (certificates !== undefined && certificate !== undefined) {
      return this.#verdict(request, certificates.read(certificate), undefined);
    }
    return this.#isRequired ? unauthorized : undefined;
  }

  #verdict(request: RequestContext, recognition: Recognition, hidden: ReadonlySet<string> | undefined): Verdict {
    switch (recognition.kind) {
      case "consumer":
        request.consumer = recognition.identity;
        request.credentialFields = hidden;
        return undefined;
      case "unavailable":
        this.#authentication.reports.unavailable(request, recognition.why);
        return UNAVAILABLE;
      case "unchecked":
        this.#authentication.reports.unavailable(request, recognition.why);
        // Unverified credentials must not reach upstreams.
        request.credentialFields = this.#everyField;
        return this.#isRequired ? this.#authentication.unauthorized : undefined;
      case "invalid":
        return this.#authentication.unauthorized;
    }
  }

  /**
   * Fields to remove before forwarding: those of the verified credential and of others not checked. An upstream may
   * trust the gateway to have verified a credential type.
   */
  #hiddenBy(at: number, presented: PresentedCredentials): ReadonlySet<string> | undefined {
    const { readers } = this.#authentication;
    let hidden = this.#hidden[at] ?? NONE;
    for (let other = at + 1; other < readers.length; other++) {
      const reader = readers[other];
      if (reader?.claims(presented) === true) hidden = hidden.union(new Set(reader.fields));
    }
    return hidden.size === 0 ? undefined : hidden;
  }
}
