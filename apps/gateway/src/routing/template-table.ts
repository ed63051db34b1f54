import { HashIndex, NONE, nextHash } from "./hash-index.ts";
import type { ParameterSink, TemplateSegment } from "./path-template.ts";


interface Template {
  readonly route: number;
  /** The static segments, in order. */
  readonly texts: readonly string[];
  readonly parameters: readonly { readonly name: string; readonly segment: number }[];
}

/** Templates with parameters in the same segments: one lookup decides among all of them. */
interface Form {
  /** `isParameter` as text; sorts the most static forms first. */
  readonly key: string;
  /** For each segment 1 if it is a parameter. */
  readonly isParameter: Uint8Array;
  readonly index: HashIndex;
}

/**
 * Finds the template that matches a path; a static segment takes precedence over a parameter, from left to right.
 * Takes one lookup per arrangement of parameters in templates of the path's length, however many templates there are.
 */
export class TemplateTable {
  readonly #templates: Template[] = [];
  /** By number of segments; the most static ones first. */
  readonly #forms: (Form[] | undefined)[] = [];
  /** Start and end of the segments of the last path, and their hashes. */
  #starts = new Int32Array(0);
  #ends = new Int32Array(0);
  #hashes = new Int32Array(0);

  get isEmpty(): boolean {
    return this.#templates.length === 0;
  }

  /** The first of templates that match the same paths wins. */
  add(segments: readonly TemplateSegment[], route: number): void {
    this.#makeRoom(segments.length);
    const form = this.#formOf(segments);
    const example = `/${segments.map((segment) => (segment.kind === "static" ? segment.text : "x")).join("/")}`;
    this.#split(example);
    const hash = this.#staticHash(form);
    if (hash === undefined || this.#lookUp(form, hash, example) !== undefined) return;
    const texts = segments.flatMap((segment) => (segment.kind === "static" ? [segment.text] : []));
    const parameters = segments.flatMap((segment, at) =>
      segment.kind === "parameter" ? [{ name: segment.name, segment: at }] : [],
    );
    form.index.add(hash, this.#templates.push({ route, texts, parameters }) - 1);
  }

  /** The route whose template matches the path, or {@link NONE}; sets its parameters. */
  find(path: string, sink: ParameterSink): number {
    const forms = this.#forms[this.#split(path)];
    if (forms === undefined) return NONE;
    for (const form of forms) {
      const hash = this.#staticHash(form);
      const template = hash === undefined ? undefined : this.#lookUp(form, hash, path);
      if (template === undefined) continue;
      sink.pathParameters = this.#parameters(template, path);
      return template.route;
    }
    return NONE;
  }

  #formOf(segments: readonly TemplateSegment[]): Form {
    const key = segments.map(({ kind }) => (kind === "static" ? "0" : "1")).join("");
    const forms = (this.#forms[segments.length] ??= []);
    const known = forms.find((form) => form.key === key);
    if (known !== undefined) return known;
    const form = { key, isParameter: Uint8Array.from(key, Number), index: new HashIndex() };
    forms.push(form);
    forms.sort((one, two) => (one.key < two.key ? -1 : 1));
    return form;
  }

  #makeRoom(count: number): void {
    if (count <= this.#starts.length) return;
    this.#starts = new Int32Array(count);
    this.#ends = new Int32Array(count);
    this.#hashes = new Int32Array(count);
  }

  /** Splits a path and returns the number of segments, or {@link NONE} if it has more than any template. */
  #split(path: string): number {
    let count = 0;
    let start = 1;
    let hash = 0;
    for (let at = 1; at <= path.length; at += 1) {
      const unit = at === path.length ? SLASH : path.charCodeAt(at);
      if (unit !== SLASH) {
        hash = nextHash(hash, unit);
        continue;
      }
      if (count === this.#starts.length) return NONE;
      this.#starts[count] = start;
      this.#ends[count] = at;
      this.#hashes[count] = hash;
      count += 1;
      start = at + 1;
      hash = 0;
    }
    return count;
  }

  /** The hash of the static segments of a form; undefined if a parameter would be empty. */
  #staticHash({ isParameter }: Form): number | undefined {
    let hash = 0;
    for (let at = 0; at < isParameter.length; at += 1) {
      if (isParameter[at] === 0) hash = nextHash(hash, this.#hashes[at] ?? 0);
      else if (this.#starts[at] === this.#ends[at]) return undefined;
    }
    return hash;
  }

  #lookUp(form: Form, hash: number, path: string): Template | undefined {
    for (let place = form.index.first(hash); place !== NONE; place = form.index.next(hash, place)) {
      const template = this.#templates[form.index.entryAt(place)];
      if (template !== undefined && this.#fits(template, form, path)) return template;
    }
    return undefined;
  }

  #fits({ texts }: Template, { isParameter }: Form, path: string): boolean {
    let next = 0;
    for (let at = 0; at < isParameter.length; at += 1) {
      if (isParameter[at] === 1) continue;
      const text = texts[next] ?? "";
      const start = this.#starts[at] ?? 0;
      if (text.length !== (this.#ends[at] ?? 0) - start || !path.startsWith(text, start)) return false;
      next += 1;
    }
    return true;
  }

  #parameters({ parameters }: Template, path: string): Record<string, string> {
    const found = Object.create(null) as Record<string, string>;
    for (const { name, segment } of parameters) found[name] = path.slice(this.#starts[segment], this.#ends[segment]);
    return found;
  }
}
