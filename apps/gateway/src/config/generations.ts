import { createHash } from "node:crypto";
import { setImmediate as eventLoopTurn } from "node:timers/promises";
import type { Logger } from "pino";
import {
  type Admin,
  type ConfigDocument,
  DEFAULT_ADMIN_BIND,
  type DocumentInput,
  type Issue,
  type Listener,
} from "@headworks/gateway-contract";
import type { Generation } from "#request/context.ts";
import type { CompileScope, EventSink } from "#slice.ts";
import { mapAnnotated } from "./annotated-fields.ts";
import {
  checkingSteps,
  type CheckParts,
  errorCount,
  errorName,
  errorTrace,
  type Findings,
  freshFindings,
  isError,
  issueCount,
} from "./check-document.ts";
import { type Candidate, compileGeneration, type CompileParts } from "./compile.ts";
import { type Change, type ChangePlan, diffDocuments, planChanges } from "./diff-documents.ts";
import type { FileOutcome } from "./file-reader.ts";
import { withOnlyListener } from "./check-listeners.ts";
import { patchedTextSteps } from "./patched-text.ts";
import type { FieldPath } from "./pointer.ts";
import {
  type DocumentReading,
  documentSchema,
  readDocument,
  readingSteps,
  type SourcePositions,
} from "./read-document.ts";
import { isReference, redactedText } from "./secrets.ts";
import { inTurns, type Steps } from "./steps.ts";
import { contentHashOfNormal, hashText, normalDocument, redactedDocument, toJson } from "./write-document.ts";

const PARTS: readonly StartOnlyPart[] = [
  {
    fieldPath: ["admin", "bind"],
    of: ({ bind = DEFAULT_ADMIN_BIND }) => bind,
    what: "The admin API moves to this address",
  },
  {
    fieldPath: ["admin", "tls"],
    of: ({ tls }) => tls === undefined,
    what: "The admin API begins or ends to speak TLS",
  },
  { fieldPath: ["admin", "audit_log"], of: ({ audit_log: log }) => log?.path, what: "The audit log goes there" },
];

type CandidateSource = "startup" | "reload" | "admin" | "rollback";

export interface SubmittedText {
  readonly text: string;
  readonly source: CandidateSource;
  /** The operator's identity in the admin API. */
  readonly actor?: string;
  /** Files read by another process. */
  readonly files?: ReadonlyMap<string, FileOutcome>;
  /** The number assigned by another process; the next one if omitted. */
  readonly generation?: number;
}

/** The reason there is no text to submit, such as a deleted file; a sentence. */
export interface NoText {
  readonly why: string;
}

/** Provides a candidate's text when it is dequeued, so that it builds on the latest publication. */
type FindText = () => SubmittedText | NoText | Promise<SubmittedText | NoText>;

/** A checked and compiled candidate with everything needed to build the same generation in another process. */
export interface AcceptedCandidate {
  readonly generation: number;
  readonly text: string;
  /** All files read for it. */
  readonly files: ReadonlyMap<string, FileOutcome>;
  /** Hash of content, secrets and files. */
  readonly fingerprint: string;
}

/** Participants that switch together with a generation: listeners and other processes. */
export interface GenerationSubscribers {
  /** Prepares the candidate without activating it. Any issue rejects the candidate. */
  prepare(candidate: AcceptedCandidate, reading: CheckedReading): Promise<readonly Issue[]>;
  /** Resolves when the published candidate is active everywhere. Never rejects. */
  publish(): Promise<void>;
  /** The prepared candidate will not be published. */
  discard(): void;
}

/** A document without errors and its positions in the text. */
export type CheckedReading = Required<Pick<DocumentReading, "document" | "positions">>;

export interface SubmitOptions {
  /** Validates without changing or notifying anything. */
  readonly dryRun?: boolean;
  /** Content hashes, one of which the running generation must have. */
  readonly ifMatch?: readonly number[];
  /** Publishes even an unchanged document, as a reload does. */
  readonly force?: boolean;
  /** Runs between acceptance and publication, such as to write the file; an exception prevents publication. */
  readonly persist?: (text: string) => Promise<void>;
}

export type SubmitOutcome =
  | ({ readonly outcome: "published" | "unchanged" } & GenerationFacts)
  /** Publishable; `generation` is the number it would get, `plan` its impact. */
  | ({ readonly outcome: "valid"; readonly plan: ChangePlan } & GenerationFacts)
  /** All issues, warnings included. */
  | { readonly outcome: "rejected"; readonly issues: readonly Issue[] }
  /** The content hash of the running generation matches none of `ifMatch`; undefined if none is running. */
  | { readonly outcome: "conflict"; readonly contentHash: number | undefined }
  /** Valid, but `persist` failed; nothing changed. */
  | { readonly outcome: "not_persisted"; readonly error: unknown };

interface GenerationFacts {
  readonly generation: number;
  readonly contentHash: number;
  readonly routeCount: number;
  readonly warnings: readonly Issue[];
  /** Relative to the previous generation. */
  readonly changes: readonly Change[];
}

export interface GenerationParts extends CheckParts, CompileParts {
  readonly events: EventSink;
  readonly log: Logger;
  /** Base directory of relative file paths in documents. */
  readonly directory: string;
  /** Published generations; omitted where another process keeps the history and assigns numbers. */
  readonly history?: GenerationHistory;
  readonly subscribers?: GenerationSubscribers;
  /** Replaces all listeners of documents. */
  readonly onlyListener?: Listener;
  /** Derives this process's part of a document shared with others, such as its share of a limit. */
  readonly ownPart?: (document: ConfigDocument) => ConfigDocument;
}

/** Warnings per log line; `POST /config/validate` lists all. */
const MAX_LOGGED = 20;

interface Built extends CheckedReading {
  readonly input: DocumentInput;
  readonly findings: Findings;
  readonly warnings: readonly Issue[];
  readonly hash: number;
  /** Hash of content, secrets and files; a reload publishes only if it differs. */
  readonly fingerprint: string;
}

/**
 * Holds the running configuration. Candidates are read, checked, compiled and published one at a time and atomically.
 */
export class Generations {
  readonly #parts: GenerationParts;
  readonly #listeners = new Set<(generation: Generation) => void>();
  #current: Generation | undefined;
  #started: StartedWith | undefined;
  #input: DocumentInput | undefined;
  #fingerprint: string | undefined;
  #text: string | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(parts: GenerationParts) {
    this.#parts = parts;
  }

  /** The generation for new requests; undefined before the first publication. */
  get current(): Generation | undefined {
    return this.#current;
  }

  /** The running document in normal form with inline secrets; the base of patches. Redact it before showing it. */
  get input(): DocumentInput | undefined {
    return this.#input;
  }

  /** The running document as submitted, with inline secrets. */
  get text(): string | undefined {
    return this.#text;
  }

  /** Registers a listener for publications; returns its unsubscribe function. */
  onPublished(listener: (generation: Generation) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Processes a candidate. Rejects only with exceptions of `FindText`, never because of a text's content. A candidate
   * without text is rejected as one with errors.
   */
  async submit(candidate: SubmittedText | FindText, options: SubmitOptions = {}): Promise<SubmitOutcome> {
    const turn = this.#queue.then(async () => await this.#take(candidate, options));
    // Drops the outcome, which the queue would otherwise retain until the next candidate.
    this.#queue = turn.then(nothing, nothing);
    return await turn;
  }

  /** All errors and publication warnings of a text; changes nothing. */
  async check(text: string): Promise<readonly Issue[]> {
    const reading = this.#asRun(await inTurns(readingSteps(text, this.#parts.directory)));
    const issues = await inTurns(checkingSteps(reading, this.#parts, freshFindings(this.#parts.environment)));
    return reading.document === undefined || issues.some(isError)
      ? issues
      : this.#withStartOnly(issues, reading.document, reading.positions);
  }

  /** Resolves when no candidate and no archive write is pending. */
  async settled(): Promise<void> {
    await this.#queue;
    await this.#parts.history?.settled();
  }

  async #take(candidate: SubmittedText | FindText, options: SubmitOptions): Promise<SubmitOutcome> {
    const hash = this.#current?.contentHash;
    if (options.ifMatch?.some((wanted) => wanted === hash) === false) return { outcome: "conflict", contentHash: hash };
    const found = typeof candidate === "function" ? await candidate() : candidate;
    if ("text" in found) return await this.#handle(found, options);
    return this.#reject([{ code: "syntax", path: "", message: found.why, severity: "error" }], options);
  }

  async #handle(candidate: SubmittedText, options: SubmitOptions): Promise<SubmitOutcome> {
    const running = this.#current;
    const built = await this.#build(candidate);
    if ("issues" in built) return this.#reject(built.issues, options);
    const isSame = this.#fingerprint === built.fingerprint;
    if (running !== undefined && isSame && candidate.source === "reload" && options.force !== true) {
      return { outcome: "unchanged", ...this.#facts(built, running.number) };
    }
    await eventLoopTurn();
    const compiled = this.#compile(built, candidate.generation ?? (await this.#nextNumber(built.hash)));
    if ("issues" in compiled) return this.#reject(compiled.issues, options);
    await eventLoopTurn();
    const facts = this.#facts(built, compiled.generation.number);
    if (options.dryRun === true) {
      return { outcome: "valid", ...facts, plan: planChanges(running?.document, built.document) };
    }
    const { subscribers } = this.#parts;
    const { text } = candidate;
    const { fingerprint, findings } = built;
    const accepted = { generation: facts.generation, text, files: findings.files.outcomes, fingerprint };
    const issues = (await subscribers?.prepare(accepted, built)) ?? [];
    if (issues.length > 0) return this.#reject([...built.warnings, ...issues], options);
    try {
      await options.persist?.(text);
    } catch (error) {
      subscribers?.discard();
      return { outcome: "not_persisted", error };
    }
    this.#publish(compiled, built, candidate, facts);
    await subscribers?.publish();
    return { outcome: "published", ...facts };
  }

  async #nextNumber(contentHash: number): Promise<number> {
    if (this.#current !== undefined) return this.#current.number + 1;
    return (await this.#parts.history?.firstNumber(contentHash)) ?? 1;
  }

  async #build({ text, files }: SubmittedText): Promise<Built | { readonly issues: readonly Issue[] }> {
    const reading = this.#asRun(await inTurns(readingSteps(text, this.#parts.directory)));
    const findings = freshFindings(this.#parts.environment, files);
    const issues = await inTurns(checkingSteps(reading, this.#parts, findings));
    const { document, input } = reading;
    if (document === undefined || input === undefined || issues.some(isError)) return { issues };
    await eventLoopTurn();
    const normal = normalDocument(input);
    const hash = createHash("sha256").update(toJson(normal));
    findings.secrets.digestInto(hash);
    findings.files.digestInto(hash);
    return {
      document,
      positions: reading.positions,
      input: normal,
      findings,
      warnings: this.#withStartOnly(issues, document, reading.positions),
      hash: contentHashOfNormal(normal),
      fingerprint: hash.digest("hex"),
    };
  }

  #withStartOnly(issues: readonly Issue[], document: ConfigDocument, positions: SourcePositions): readonly Issue[] {
    return [...issues, ...startOnlyWarnings(this.#started, document, positions)];
  }

  #asRun(reading: DocumentReading): DocumentReading {
    const { onlyListener } = this.#parts;
    const drafts = reading.drafts.map((draft) => withOnlyListener(draft, onlyListener));
    const [document] = drafts;
    return reading.document === undefined || document === undefined
      ? { ...reading, drafts }
      : { ...reading, drafts, document };
  }

  #compile(built: Built, generation: number): Candidate | { readonly issues: readonly Issue[] } {
    const { clock, log, ownPart } = this.#parts;
    const scope = compileScope(built.findings, { generation, clock, log });
    try {
      const document = ownPart?.(built.document) ?? built.document;
      return compileGeneration(document, built.hash, scope, this.#parts);
    } catch (error) {
      log.error(
        { code: "config_compile_failed", trace: errorTrace(error) },
        "A document that passed every check could not be compiled",
      );
      const message = `The document passed all checks but could not be compiled: ${errorName(error)}; the log has more`;
      return { issues: [...built.warnings, { code: "compile_failed", path: "", message, severity: "error" }] };
    }
  }

  #reject(issues: readonly Issue[], { dryRun }: SubmitOptions): SubmitOutcome {
    if (dryRun !== true) {
      const count = errorCount(issues);
      const generation = this.#current?.number ?? 0;
      this.#parts.log.error(
        { code: "config_rejected", issue_count: count, generation, issues },
        "configuration rejected",
      );
      this.#parts.events.emit("config_rejected", { issue_count: count, generation });
    }
    return { outcome: "rejected", issues };
  }

  #facts({ document, hash, warnings }: Built, generation: number): GenerationFacts {
    return {
      generation,
      contentHash: hash,
      routeCount: document.routes.length,
      warnings,
      changes: diffDocuments(this.#current?.document, document),
    };
  }

  #publish({ generation, published }: Candidate, built: Built, candidate: SubmittedText, facts: GenerationFacts): void {
    const { log, events } = this.#parts;
    this.#current = generation;
    this.#started ??= { admin: built.document.admin };
    this.#input = built.input;
    this.#fingerprint = built.fingerprint;
    const failed = (name: string, error: unknown): void => {
      log.error(
        { code: "config_publish_incomplete", part: name, trace: errorTrace(error) },
        "a part did not switch to the new configuration",
      );
    };
    published(failed);
    this.#remember(built, candidate, facts);
    const { number, contentHash: hash } = generation;
    const counted = { generation: number, content_hash: hash, route_count: facts.routeCount };
    log.info(
      { code: "config_published", ...counted, hash: hashText(hash), source: candidate.source },
      "configuration published",
    );
    this.#logWarnings(facts);
    events.emit("config_published", counted);
    for (const listener of this.#listeners) {
      try {
        listener(generation);
      } catch (error) {
        failed("a listener", error);
      }
    }
  }

  /** File changes have no response to carry warnings. Worker processes would only repeat them. */
  #logWarnings({ generation, warnings }: GenerationFacts): void {
    if (warnings.length === 0 || this.#parts.history === undefined) return;
    const shown = warnings.slice(0, MAX_LOGGED).map(({ code, path, message, line }) => ({ code, path, message, line }));
    this.#parts.log.warn(
      { code: "config_warnings", generation, warning_count: issueCount(warnings), warnings: shown },
      "the configuration that was published has warnings",
    );
  }

  #remember({ input }: Built, { text, source, actor }: SubmittedText, facts: GenerationFacts): void {
    const { generation, contentHash: hash, routeCount } = facts;
    const publishedMs = this.#parts.clock.now();
    this.#text = text;
    const past = { generation, contentHash: hash, routeCount, publishedMs, source, actor };
    this.#parts.history?.add(past, text, input);
  }
}

/** Retains only the findings, since parts of a generation hold on to this scope. */
function compileScope(
  { secrets, files }: Findings,
  facts: Pick<CompileScope, "generation" | "clock" | "log">,
): CompileScope {
  return {
    ...facts,
    secret: (text) => {
      const outcome = secrets.resolve(text);
      if (!outcome.ok) throw new Error("A secret was not checked before it was used");
      return outcome.secret;
    },
    readFile: (path) => {
      const outcome = files.read(path);
      if (!outcome.ok) throw new Error(`The file ${path} was not checked before it was used: it ${outcome.why}`);
      return outcome.bytes;
    },
  };
}

function nothing(): void {
  // The submitter handles the outcome.
}

/** The part of the start-up document that later generations cannot change. */
type StartedWith = Pick<ConfigDocument, "admin">;

/** Warnings about changed admin settings that take effect only at start-up. */
function startOnlyWarnings(
  started: StartedWith | undefined,
  next: StartedWith,
  positions: SourcePositions,
): readonly Issue[] {
  if (started === undefined) return [];
  const warning = (fieldPath: FieldPath, what: string): Issue => ({
    code: "restart_needed",
    ...positions.locate(fieldPath),
    message: `${what} when the gateway is started again, not before`,
    severity: "warning",
  });
  const [before, after] = [started.admin, next.admin];
  if (before === undefined || after === undefined) {
    if (before === after) return [];
    return [warning(["admin"], after === undefined ? "The admin API is closed" : "The admin API is opened")];
  }
  return PARTS.filter(({ of }) => of(before) !== of(after)).map(({ fieldPath, what }) => warning(fieldPath, what));
}

interface StartOnlyPart {
  readonly fieldPath: FieldPath;
  readonly of: (admin: Admin) => unknown;
  readonly what: string;
}

interface PastFacts {
  readonly generation: number;
  readonly contentHash: number;
  readonly routeCount: number;
  readonly publishedMs: number;
  readonly source: CandidateSource;
  readonly actor: string | undefined;
}

export interface PastGeneration extends PastFacts {
  /** The text for a rollback: as submitted, with secrets, or as archived. */
  readonly text: string;
  /** The normal form with inline secrets redacted; computed on demand. */
  readonly redacted: DocumentInput;
}

const MOST = 100;
const MAX_CHARACTERS = 32 * 1024 * 1024;

/** `text` is non-enumerable, since it may contain secrets that printing would reveal. */
function pastGeneration(facts: PastFacts, text: string): PastGeneration {
  return Object.defineProperties(
    { ...facts, text: "", redacted: {} },
    {
      text: { enumerable: false, value: text },
      redacted: { enumerable: false, get: () => redactedForm(text) },
    },
  );
}

/** The last published generations: at most 100 and at most 32 million characters of text, but always one. */
export class PastGenerations {
  #newestFirst: readonly PastGeneration[] = [];
  readonly #maxCharacters: number;

  constructor(maxCharacters: number = MAX_CHARACTERS) {
    this.#maxCharacters = maxCharacters;
  }

  get newestFirst(): readonly PastGeneration[] {
    return this.#newestFirst;
  }

  // Keeps texts only: trees of a hundred large documents would exhaust memory.
  add(facts: PastFacts, text: string): void {
    let characters = 0;
    this.#newestFirst = [pastGeneration(facts, text), ...this.#newestFirst].filter((one, at) => {
      characters += one.text.length;
      return at === 0 || (at < MOST && characters <= this.#maxCharacters);
    });
  }

  drop(generation: number): void {
    this.#newestFirst = this.#newestFirst.filter((one) => one.generation !== generation);
  }
}

function redactedForm(text: string): DocumentInput {
  const { input = {} } = readDocument(text);
  return redactedDocument(normalDocument(input));
}

/** Longer texts with inline secrets are archived as JSON, written ten times as fast. */
const MAX_LAID_OUT = 256 * 1024;

/** Shorter secrets occur in most texts by chance. */
const MIN_TELLING = 4;

export interface ArchivedGeneration extends PastFacts {
  /** The submitted document with its secret references; placeholders replace inline secrets. */
  readonly text: string;
}

/** Persistent storage of published generations. */
export interface GenerationArchive {
  /** Resolves once on disk. */
  recordGeneration(record: ArchivedGeneration): Promise<void>;
  /** Newest first, without texts. */
  generations(limit: number): Promise<readonly PastFacts[]>;
  generation(number: number): Promise<ArchivedGeneration | undefined>;
}

/**
 * Published generations, newest first. With an archive the history survives restarts and texts are loaded on demand;
 * memory then holds only generations not archived yet or rejected by the archive, and texts with inline secrets. See
 * decision 019.
 */
export class GenerationHistory {
  readonly #archive: GenerationArchive | undefined;
  readonly #log: Logger;
  readonly #inMemory = new PastGenerations();
  /** The newest archived generation at start-up. */
  #latest: PastFacts | undefined;
  #recording: Promise<void> = Promise.resolve();

  constructor(archive: GenerationArchive | undefined, log: Logger) {
    this.#archive = archive;
    this.#log = log;
  }

  /**
   * The number of a process's first generation: that of the newest archived one if its content is equal, otherwise the
   * next. Rejects if the archive cannot be read.
   */
  async firstNumber(contentHash: number): Promise<number> {
    [this.#latest] = (await this.#archive?.generations(1)) ?? [];
    if (this.#latest === undefined) return 1;
    return this.#latest.contentHash === contentHash ? this.#latest.generation : this.#latest.generation + 1;
  }

  /** `input` is the parsed text in normal form. */
  add(facts: PastFacts, text: string, input: DocumentInput): void {
    this.#inMemory.add(facts, text);
    const archive = this.#archive;
    if (archive === undefined) return;
    // Not awaited: a blocked store must not prevent a valid configuration from running.
    this.#recording = this.#recording.then(async () => {
      try {
        await this.#record(archive, facts, text, input);
      } catch (error) {
        this.#log.error(
          { code: "config_not_archived", generation: facts.generation, err: error },
          "the generation is missing from the stored history",
        );
      }
    });
  }

  async #record(archive: GenerationArchive, facts: PastFacts, text: string, input: DocumentInput): Promise<void> {
    const archived = await inTurns(archivedTextSteps(text, input));
    if (facts.generation !== this.#latest?.generation) {
      await archive.recordGeneration({ ...facts, text: archived.text });
    }
    if (archived.isWhole) this.#inMemory.drop(facts.generation);
  }

  /** Rejects if the archive cannot be read. */
  async newest(limit: number): Promise<readonly PastFacts[]> {
    const archived = (await this.#archive?.generations(limit)) ?? [];
    const known = new Set(archived.map(({ generation }) => generation));
    return [...archived, ...this.#inMemory.newestFirst.filter(({ generation }) => !known.has(generation))]
      .toSorted((a, b) => b.generation - a.generation)
      .slice(0, limit);
  }

  /** Undefined if not retained. Rejects if the archive cannot be read. */
  async find(generation: number): Promise<PastGeneration | undefined> {
    const here = this.#inMemory.newestFirst.find((past) => past.generation === generation);
    if (here !== undefined || this.#archive === undefined) return here;
    const archived = await this.#archive.generation(generation);
    if (archived === undefined) return undefined;
    const { text, ...facts } = archived;
    return pastGeneration(facts, text);
  }

  /** The text for a rollback: inline secrets that were not archived are restored if `running` contains them. */
  async textToRun({ text }: PastGeneration, running: DocumentInput): Promise<string> {
    return await inTurns(restoredTextSteps(text, running));
  }

  /** Resolves when no archive write is pending. */
  async settled(): Promise<void> {
    await this.#recording;
  }
}

interface ArchivedText {
  readonly text: string;
  /** False if placeholders replace inline secrets. */
  readonly isWhole: boolean;
}

/** The text as submitted, with placeholders for inline secrets. `input` is its normal form. */
export function* archivedTextSteps(text: string, input: DocumentInput): Steps<ArchivedText> {
  const secrets = inlineSecrets(input);
  if (secrets.size === 0) return { text, isWhole: true };
  const redacted = redactedDocument(input);
  const archived = text.length > MAX_LAID_OUT ? undefined : yield* patchedTextSteps(text, input, redacted);
  // Comments may repeat a secret, and unused anchors may contain one.
  const telling = [...secrets.values()].filter(({ length }) => length >= MIN_TELLING);
  const isClean = archived !== undefined && !telling.some((secret) => archived.includes(secret));
  return { text: isClean ? archived : toJson(redacted), isWhole: false };
}

/** Restores inline secrets that `running` also contains, by their hash. Other placeholders stay. */
export function* restoredTextSteps(archived: string, running: DocumentInput): Steps<string> {
  const secrets = inlineSecrets(running);
  if (secrets.size === 0 || !archived.includes("${redacted:")) return archived;
  const { input } = yield* readingSteps(archived, ".");
  if (input === undefined) return archived;
  yield;
  const normal = normalDocument(input);
  const restored = mapAnnotated(documentSchema, normal, "x-secret", (text) => secrets.get(text) ?? text);
  return yield* patchedTextSteps(archived, normal, restored);
}

function inlineSecrets(document: DocumentInput): Map<string, string> {
  const secrets = new Map<string, string>();
  mapAnnotated(documentSchema, document, "x-secret", (text) => {
    if (!isReference(text)) secrets.set(redactedText(text), text);
    return text;
  });
  return secrets;
}
