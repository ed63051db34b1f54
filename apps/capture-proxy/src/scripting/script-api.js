/**
 * The script API, as it runs inside a script's interpreter: QuickJS, without any object of Node. The sandbox evaluates
 * this file as one expression and passes the functions of the host. `script-api.d.ts` describes what scripts see.
 *
 * A hook gets one JSON text (`HookInput` in `script-runner.ts`) and the bodies, and returns null if it changed nothing,
 * else one JSON text (`HookOutput`) and the changed body.
 */
(function (host) {
  "use strict";
  const { parse, stringify } = JSON;
  const { defineProperty, fromEntries, keys: keysOf } = Object;
  const isArray = Array.isArray;
  const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
  const NOT_IN_VALUE = /[\r\n\0]/;
  const BEYOND_ASCII = /[^\0-\x7f]/;
  const { escape, unescape } = globalThis;

  // Bytes and text

  const isBytes = (value) => value instanceof Uint8Array;
  const bytesOf = (value) => {
    return asBytes(value) ?? host.encodeUtf8(String(value));
  };
  /** The bytes of a buffer or of a view of one; undefined for other values. */
  const asBytes = (value) => {
    if (isBytes(value)) return value;
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return undefined;
  };

  // Fields are octets, one character each. Scripts read and write them as UTF-8; other octets are left as they are.
  const fieldText = (octets) => {
    if (!BEYOND_ASCII.test(octets)) return octets;
    try {
      return decodeURIComponent(escape(octets));
    } catch {
      return octets;
    }
  };
  const fieldOctets = (text) => (BEYOND_ASCII.test(text) ? unescape(encodeURIComponent(text.toWellFormed())) : text);

  // Header fields

  /** Names and values in turns, as octets; `headers['x']` and the methods work on the same list. */
  class HeaderList {
    constructor(fields) {
      this.fields = fields;
      this.isChanged = false;
    }
    at(name) {
      const wanted = name.toLowerCase();
      for (let index = 0; index < this.fields.length; index += 2) {
        if (this.fields[index].toLowerCase() === wanted) return index;
      }
      return -1;
    }
    getAll(name) {
      const wanted = String(name).toLowerCase();
      const values = [];
      for (let index = 0; index < this.fields.length; index += 2) {
        if (this.fields[index].toLowerCase() === wanted) values.push(fieldText(this.fields[index + 1]));
      }
      return values;
    }
    get(name) {
      const values = this.getAll(name);
      return values.length === 0 ? undefined : values.join(", ");
    }
    has(name) {
      return this.at(String(name)) !== -1;
    }
    set(name, value) {
      checkName(name);
      const values = (isArray(value) ? value : [value]).map((each) => checkedField(name, each));
      const first = this.at(name);
      const kept = first === -1 ? name : this.fields[first];
      const rest = this.fields;
      const wanted = name.toLowerCase();
      const changed = [];
      let isPlaced = false;
      for (let index = 0; index < rest.length; index += 2) {
        if (rest[index].toLowerCase() !== wanted) changed.push(rest[index], rest[index + 1]);
        else if (!isPlaced) {
          for (const each of values) changed.push(kept, each);
          isPlaced = true;
        }
      }
      if (!isPlaced) for (const each of values) changed.push(kept, each);
      this.fields = changed;
      this.isChanged = true;
    }
    append(name, value) {
      this.fields.push(name, checkedField(name, value));
      this.isChanged = true;
    }
    delete(name) {
      const wanted = String(name).toLowerCase();
      const changed = [];
      for (let index = 0; index < this.fields.length; index += 2) {
        if (this.fields[index].toLowerCase() !== wanted) changed.push(this.fields[index], this.fields[index + 1]);
      }
      if (changed.length === this.fields.length) return false;
      this.fields = changed;
      this.isChanged = true;
      return true;
    }
    names() {
      const names = [];
      const seen = new Set();
      for (let index = 0; index < this.fields.length; index += 2) {
        const lower = this.fields[index].toLowerCase();
        if (seen.has(lower)) continue;
        seen.add(lower);
        names.push(this.fields[index]);
      }
      return names;
    }
  }

  function checkName(name) {
    if (typeof name !== "string" || !TOKEN.test(name)) {
      throw new TypeError(`headers: ${inspect(name)} is no field name`);
    }
  }

  /** The octets of a value. */
  function checkedField(name, value) {
    checkName(name);
    if (!["string", "number", "boolean", "bigint"].includes(typeof value)) {
      throw new TypeError(`headers: the value of ${name} is ${inspect(value)}: a string is expected`);
    }
    const text = String(value);
    if (NOT_IN_VALUE.test(text)) throw new TypeError(`headers: the value of ${name} contains a line break or NUL`);
    return fieldOctets(text.trim());
  }

  const METHODS = {
    get: (list) => (name) => list.get(name),
    getAll: (list) => (name) => list.getAll(name),
    has: (list) => (name) => list.has(name),
    set: (list) => (name, value) => list.set(name, value),
    append: (list) => (name, value) => list.append(name, value),
    delete: (list) => (name) => list.delete(name),
    keys: (list) => () => list.names(),
    entries: (list) => () => pairs(list),
    forEach: (list) => (run) => pairs(list).forEach(([name, value]) => run(value, name)),
    toJSON: (list) => () => fromEntries(list.names().map((name) => [name, list.get(name)])),
  };
  const METHOD_NAMES = new Set(keysOf(METHODS));
  /** What code calls on any object. */
  const OF_OBJECTS = new Set(["toString", "valueOf", "hasOwnProperty", "propertyIsEnumerable"]);

  function pairs(list) {
    const result = [];
    for (let index = 0; index < list.fields.length; index += 2) {
      result.push([list.fields[index], fieldText(list.fields[index + 1])]);
    }
    return result;
  }

  function headersOf(list) {
    return new Proxy(
      {},
      {
        get: (_target, name) => {
          if (name === Symbol.iterator) return () => pairs(list)[Symbol.iterator]();
          if (typeof name !== "string") return undefined;
          if (METHOD_NAMES.has(name)) return METHODS[name](list);
          return list.get(name) ?? (OF_OBJECTS.has(name) ? Object.prototype[name] : undefined);
        },
        set: (_target, name, value) => {
          if (value === undefined || value === null) list.delete(name);
          else list.set(name, value);
          return true;
        },
        has: (_target, name) => typeof name === "string" && (METHOD_NAMES.has(name) || list.has(name)),
        // A definition would be stored nowhere.
        defineProperty: () => false,
        deleteProperty: (_target, name) => {
          list.delete(name);
          return true;
        },
        ownKeys: () => list.names(),
        getOwnPropertyDescriptor: (_target, name) => {
          if (typeof name !== "string" || !list.has(name)) return undefined;
          return { value: list.get(name), writable: true, enumerable: true, configurable: true };
        },
      },
    );
  }

  // Bodies

  /** The body of a message. `state`: `text`, `bytes`, `none`, or why it is not there. */
  class Body {
    constructor(state, value) {
      this.state = state;
      this.value = value;
      this.isChanged = false;
    }
    get text() {
      this.check();
      return typeof this.value === "string" ? this.value : null;
    }
    get bytes() {
      this.check();
      if (this.value === null) return new Uint8Array(0);
      return isBytes(this.value) ? this.value : host.encodeUtf8(this.value);
    }
    set(value) {
      const given = typeof value === "string" ? value : (asBytes(value) ?? (value === null ? "" : value));
      if (typeof given !== "string" && !isBytes(given)) {
        throw new TypeError("body: a string, bytes or null are expected; use setJson(value) for an object");
      }
      this.value = given;
      this.state = "changed";
      this.isChanged = true;
    }
    get isThere() {
      return ["text", "bytes", "none", "changed"].includes(this.state);
    }
    check() {
      if (this.isThere) return;
      throw new Error(`body: ${this.state}`);
    }
  }

  // URLs

  const URL_PARTS =
    /^([a-z][a-z0-9+.-]*):\/\/(?:[^/?#@]*@)?(?:\[([^\]]*)\]|([^:/?#]*))(?::(\d+))?([^?#]*)(?:\?([^#]*))?/i;
  const DEFAULT_PORTS = { http: 80, https: 443, ws: 80, wss: 443 };
  const decode = (text) => {
    try {
      return decodeURIComponent(text.replace(/\+/g, " "));
    } catch {
      return text;
    }
  };
  const encode = (text) => encodeURIComponent(String(text));

  function parseQuery(text) {
    const query = {};
    for (const part of text.split("&")) {
      if (part === "") continue;
      const at = part.indexOf("=");
      const name = decode(at === -1 ? part : part.slice(0, at));
      const value = at === -1 ? "" : decode(part.slice(at + 1));
      const known = Object.hasOwn(query, name) ? query[name] : undefined;
      const next = known === undefined ? value : isArray(known) ? [...known, value] : [known, value];
      defineProperty(query, name, { value: next, writable: true, enumerable: true, configurable: true });
    }
    return query;
  }

  function buildQuery(query) {
    return keysOf(query)
      .flatMap((name) => (isArray(query[name]) ? query[name] : [query[name]]).map((value) => [name, value]))
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => `${encode(name)}=${encode(value)}`)
      .join("&");
  }

  function parseUrl(text) {
    const found = URL_PARTS.exec(String(text));
    if (found === null) throw new TypeError(`url.parse: ${inspect(text)} is no absolute URL`);
    const scheme = found[1].toLowerCase();
    const port = found[4] === undefined ? (DEFAULT_PORTS[scheme] ?? null) : Number(found[4]);
    return {
      scheme,
      host: (found[2] ?? found[3]).toLowerCase(),
      port,
      path: found[5] === "" ? "/" : found[5],
      query: parseQuery(found[6] ?? ""),
    };
  }

  function buildUrl({ scheme = "https", host: name, port, path = "/", query }) {
    if (typeof name !== "string" || name === "") throw new TypeError("url.build: a host is missing");
    const authority = name.includes(":") && !name.startsWith("[") ? `[${name}]` : name;
    const isDefault = port === undefined || port === null || DEFAULT_PORTS[scheme] === Number(port);
    const search = typeof query === "string" ? query.replace(/^\?/, "") : query ? buildQuery(query) : "";
    const start = (path.startsWith("/") ? path : `/${path}`).replace(/[?#]/g, encode);
    return `${scheme}://${authority}${isDefault ? "" : `:${port}`}${start}${search === "" ? "" : `?${search}`}`;
  }

  // Messages

  /**
   * What requests and responses share. Members are on the prototype: defining them for each message would take longer than
   * most hooks. Scripts cannot reach what is private.
   */
  class Message {
    #list;
    #body;
    #headers;
    constructor(list, body) {
      this.#list = list;
      this.#body = body;
    }
    get headers() {
      return (this.#headers ??= headersOf(this.#list));
    }
    set headers(value) {
      if (typeof value !== "object" || value === null) throw new TypeError("headers: an object is expected");
      const fields = [];
      for (const [name, each] of entriesOf(value)) {
        for (const one of isArray(each) ? each : [each]) fields.push(name, checkedField(name, one));
      }
      this.#list.fields = fields;
      this.#list.isChanged = true;
    }
    get body() {
      return this.#body.text;
    }
    set body(value) {
      this.#body.set(value);
    }
    get bytes() {
      return this.#body.bytes;
    }
    set bytes(value) {
      this.#body.set(bytesOf(value));
    }
    get contentType() {
      return this.#list.get("content-type") ?? null;
    }
    set contentType(value) {
      this.#list.set("Content-Type", value);
    }
    /** A body that was not loaded is left out, so that printing a message does not need it. */
    toJSON() {
      const shown = {};
      for (const name in this) shown[name] = this[name];
      return this.#body.isThere ? { ...shown, body: this.#body.text } : shown;
    }
    json() {
      const { text } = this.#body;
      if (text === null || text === "") throw new SyntaxError("json: the body is empty or no text");
      return parse(text.startsWith("\ufeff") ? text.slice(1) : text);
    }
    setJson(value) {
      const text = stringify(value);
      if (text === undefined) throw new TypeError("setJson: the value has no JSON text");
      this.#body.set(text);
      const type = this.#list.get("content-type") ?? "";
      if (!/[/+]json\b/i.test(type)) this.#list.set("Content-Type", "application/json");
    }
  }

  /** Names and values of an object, an array of pairs, or headers. */
  function entriesOf(value) {
    if (isArray(value)) return value;
    return typeof value.entries === "function" ? [...value.entries()] : Object.entries(value);
  }

  let requestChanges;

  class RequestMessage extends Message {
    static {
      requestChanges = (request) => request.#changes();
    }
    #input;
    #list;
    #method;
    #url;
    #query;
    #queryText = "";
    constructor(input, body) {
      const list = new HeaderList(input.fields);
      super(list, body);
      this.#input = input;
      this.#list = list;
      this.#method = input.method;
      this.#url = input.url;
    }
    get method() {
      return this.#method;
    }
    set method(value) {
      if (typeof value !== "string" || !TOKEN.test(value)) {
        throw new TypeError(`method: ${inspect(value)} is no method`);
      }
      this.#method = value;
    }
    get url() {
      this.#keepQuery();
      return this.#url;
    }
    set url(value) {
      if (!/^(?:https?|wss?):\/\/[^/?#]/i.test(String(value))) {
        throw new TypeError(`url: ${inspect(value)} is not an absolute URL`);
      }
      this.#url = String(value);
      this.#query = undefined;
    }
    get scheme() {
      return parseUrl(this.#url).scheme;
    }
    get host() {
      return parseUrl(this.#url).host;
    }
    set host(value) {
      const [, name, port] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(String(value)) ?? [undefined, String(value)];
      this.#update(port === undefined ? { host: name } : { host: name, port: Number(port) });
    }
    get port() {
      return parseUrl(this.#url).port;
    }
    set port(value) {
      this.#update({ port: Number(value) });
    }
    get path() {
      return parseUrl(this.#url).path;
    }
    set path(value) {
      const [path, query] = String(value).split(/\?(.*)/s);
      this.#update(query === undefined ? { path } : { path, query });
    }
    /** Changes of its members change the URL. */
    get query() {
      if (this.#query === undefined) {
        this.#query = parseQuery(search(this.#url));
        this.#queryText = stringify(this.#query);
      }
      return this.#query;
    }
    set query(value) {
      this.#update({ query: typeof value === "string" ? value : buildQuery(value) });
      this.#query = undefined;
    }
    /** Changes of the members of `query` are part of the URL from its next use. */
    #keepQuery() {
      if (this.#query === undefined) return;
      const text = stringify(this.#query);
      if (text === this.#queryText) return;
      this.#queryText = text;
      this.#url = buildUrl({ ...parseUrl(this.#url), query: buildQuery(this.#query) });
    }
    #update(change) {
      this.#keepQuery();
      this.#url = buildUrl({ ...parseUrl(this.#url), query: search(this.#url), ...change });
      if (change.query !== undefined) this.#query = undefined;
    }
    #changes() {
      this.#keepQuery();
      const changed = {};
      if (this.#method !== this.#input.method) changed.method = this.#method;
      if (this.#url !== this.#input.url) changed.url = this.#url;
      if (this.#list.isChanged) changed.fields = this.#list.fields;
      return changed;
    }
  }

  const search = (url) => /^[^?#]*\?([^#]*)/.exec(url)?.[1] ?? "";

  function checkedReason(value) {
    if (NOT_IN_VALUE.test(String(value))) throw new TypeError("statusMessage: it contains a line break or NUL");
    return fieldOctets(String(value).trim());
  }

  let responseChanges;

  class ResponseMessage extends Message {
    static {
      responseChanges = (response) => response.#changes();
    }
    #input;
    #list;
    #status;
    #reason;
    constructor(input, body) {
      const list = new HeaderList(input.fields);
      super(list, body);
      this.#input = input;
      this.#list = list;
      this.#status = input.status;
      this.#reason = input.reason;
    }
    get statusCode() {
      return this.#status;
    }
    set statusCode(value) {
      const status = Number(value);
      if (!Number.isInteger(status) || status < 200 || status > 599) {
        throw new RangeError(`statusCode: ${inspect(value)} is not between 200 and 599`);
      }
      this.#status = status;
    }
    get statusMessage() {
      return fieldText(this.#reason);
    }
    set statusMessage(value) {
      this.#reason = checkedReason(value);
    }
    get durationMs() {
      return this.#input.durationMs;
    }
    #changes() {
      const changed = {};
      if (this.#status !== this.#input.status) changed.status = this.#status;
      if (this.#reason !== this.#input.reason) changed.reason = this.#reason;
      if (this.#list.isChanged) changed.fields = this.#list.fields;
      return changed;
    }
  }

  /** Members that loops over a message and its JSON show; bodies are not among them. */
  const SHOWN = [
    [Message, ["headers", "contentType"]],
    [RequestMessage, ["method", "url", "scheme", "host", "port", "path", "query"]],
    [ResponseMessage, ["statusCode", "statusMessage", "durationMs"]],
  ];
  for (const [{ prototype }, names] of SHOWN) {
    for (const name of names) defineProperty(prototype, name, { enumerable: true });
    Object.freeze(prototype);
  }

  // Results

  function ownResponse(value) {
    if (typeof value !== "object" || value === null) throw new TypeError("response: an object is expected");
    const list = new HeaderList([]);
    const given = value.headers ?? {};
    if (typeof given !== "object") throw new TypeError("response.headers: an object is expected");
    for (const [name, each] of entriesOf(given)) {
      for (const one of isArray(each) ? each : [each]) list.append(name, one);
    }
    const status = value.statusCode ?? value.status ?? 200;
    if (!Number.isInteger(status) || status < 200 || status > 599) {
      throw new RangeError(`response.statusCode: ${inspect(status)} is not between 200 and 599`);
    }
    let body = asBytes(value.body) ?? value.body ?? "";
    if (typeof body === "object" && !isBytes(body)) {
      body = stringify(body);
      if (!list.has("content-type")) list.append("Content-Type", "application/json");
    }
    if (!isBytes(body)) body = String(body);
    const shown = { status, fields: list.fields };
    if (value.statusMessage !== undefined) shown.reason = checkedReason(value.statusMessage);
    return { response: shown, body };
  }

  /** The part of the output that the returned value decides. */
  function decision(returned) {
    if (returned === undefined || returned === null || returned === true) return { output: {}, body: undefined };
    if (returned === false) return { output: { stop: true }, body: undefined };
    if (typeof returned !== "object") {
      throw new TypeError(`the hook returned ${inspect(returned)}: an object is expected`);
    }
    const output = {};
    const { delay } = returned;
    if (delay !== undefined && !(Number.isFinite(delay) && delay >= 0)) {
      throw new TypeError(`delay: ${inspect(delay)} is no number of milliseconds`);
    }
    if (delay > 0) output.delayMs = delay;
    const goesOn = returned.continue ?? returned.continue_ ?? true;
    if (goesOn) return { output, body: undefined };
    output.stop = true;
    if (returned.close === true) output.close = true;
    if (returned.response === undefined || returned.response === null) return { output, body: undefined };
    const own = ownResponse(returned.response);
    output.response = own.response;
    return { output, body: own.body };
  }

  function bodyOf(state, value) {
    return new Body(state ?? "none", value);
  }

  const isEmpty = (value) => keysOf(value).length === 0;

  /** Output and body, or null if the hook changed nothing. */
  function result(output, body) {
    return isEmpty(output) && body === undefined ? null : [stringify(output), body ?? null];
  }

  /** The context of a call, and a function that adds its changed data to the output. */
  function contextOf(input) {
    const text = input.data ?? "{}";
    const context = { ...input.context, data: parse(text) };
    const add = (output) => {
      const { data } = context;
      if (typeof data !== "object" || data === null || isArray(data)) {
        throw new TypeError(`context.data: ${inspect(data)} is no object`);
      }
      const now = stringify(data);
      if (now !== text) output.data = now;
    };
    return { context, add };
  }

  // Hooks

  /** For each hook: its arguments, and a function that turns the returned value into the result. */
  const HOOKS = {
    onRequest: (input, requestBody) => {
      const body = bodyOf(input.requestBody, requestBody);
      const request = new RequestMessage(input.request, body);
      const { context, add } = contextOf(input);
      return {
        args: [request, context],
        finish: (returned) => {
          const decided = decision(returned === request ? undefined : returned);
          const changed = requestChanges(request);
          if (!isEmpty(changed)) decided.output.request = changed;
          add(decided.output);
          if (decided.body === undefined && body.isChanged) {
            decided.output.bodyChanged = true;
            return result(decided.output, body.value);
          }
          return result(decided.output, decided.body);
        },
      };
    },
    onResponse: (input, requestBody, responseBody) => {
      const body = bodyOf(input.responseBody, responseBody);
      const request = new RequestMessage(input.request, bodyOf(input.requestBody, requestBody));
      const response = new ResponseMessage(input.response, body);
      const { context, add } = contextOf(input);
      return {
        args: [request, response, context],
        finish: (returned) => {
          const decided = decision(returned === response ? undefined : returned);
          const changed = responseChanges(response);
          if (!isEmpty(changed)) decided.output.change = changed;
          add(decided.output);
          if (decided.body === undefined && body.isChanged) {
            decided.output.bodyChanged = true;
            return result(decided.output, body.value);
          }
          return result(decided.output, decided.body);
        },
      };
    },
    onWebSocketMessage: (input, payload) => messageHook(input, payload, "payload"),
    onGrpcMessage: (input, payload) => messageHook(input, payload, "message"),
    onTrafficStore: (input, requestBody, responseBody) => {
      const sentBody = bodyOf(input.requestBody, requestBody);
      const receivedBody = bodyOf(input.responseBody, responseBody);
      const request = new RequestMessage(input.request, sentBody);
      const response = input.response === undefined ? null : new ResponseMessage(input.response, receivedBody);
      const { context } = contextOf(input);
      const entry = {
        id: input.context.requestId,
        request,
        response,
        notes: null,
        tags: [],
      };
      return {
        args: [Object.assign(context, { entry })],
        finish: (returned) => {
          const { output } = decision(returned);
          const changed = requestChanges(request);
          if (!isEmpty(changed)) output.request = changed;
          const change = response === null ? {} : responseChanges(response);
          if (!isEmpty(change)) output.change = change;
          const tags = isArray(entry.tags) ? entry.tags.map(String) : [];
          if (entry.notes !== null && entry.notes !== undefined) output.notes = String(entry.notes);
          if (tags.length > 0) output.tags = tags;
          const bodies = [sentBody, receivedBody].map((each) => (each.isChanged ? each.value : null));
          if (sentBody.isChanged) output.requestBodyChanged = true;
          if (receivedBody.isChanged) output.responseBodyChanged = true;
          return isEmpty(output) ? null : [stringify(output), ...bodies];
        },
      };
    },
    onSessionStart: (input) => sessionHook(input),
    onSessionEnd: (input) => sessionHook(input),
  };

  function messageHook(input, payload, name) {
    const { context, add } = contextOf(input);
    context.request = input.request === undefined ? null : new RequestMessage(input.request, bodyOf("none", null));
    context[name] = payload;
    return {
      args: [context],
      finish: (returned) => {
        const { output } = decision(returned);
        add(output);
        if (context[name] === payload) return result(output, undefined);
        const changed =
          name === "payload" && typeof context[name] === "string" ? context[name] : asBytes(context[name]);
        const wanted = name === "payload" ? "neither text nor bytes" : "no bytes";
        if (changed === undefined) throw new TypeError(`${name}: ${inspect(context[name])} is ${wanted}`);
        output.bodyChanged = true;
        return result(output, changed);
      },
    };
  }

  function sessionHook(input) {
    return { args: [{ ...input.context, data: {} }], finish: () => null };
  }

  // Globals

  const MAX_DEPTH = 4;
  /** More do not fit into a line. */
  const MAX_VALUES = 1000;

  /** A readable text of any value, as consoles print it. */
  function inspect(value, depth = 0, seen = new Set(), left = { values: MAX_VALUES }) {
    left.values -= 1;
    if (left.values < 0) return "…";
    if (typeof value === "string") return depth === 0 ? value : stringify(value);
    if (typeof value === "function") return `[Function ${value.name || "anonymous"}]`;
    if (typeof value === "bigint") return `${value}n`;
    if (typeof value !== "object" || value === null) return String(value);
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    if (isBytes(value)) return `Uint8Array(${value.length})`;
    if (seen.has(value)) return "[Circular]";
    if (depth >= MAX_DEPTH) return isArray(value) ? "[Array]" : "[Object]";
    seen.add(value);
    const inner = (item) => inspect(item, depth + 1, seen, left);
    let text;
    if (isArray(value)) text = `[${value.slice(0, 100).map(inner).join(", ")}${value.length > 100 ? ", …" : ""}]`;
    else if (value instanceof Map) text = `Map(${value.size}) ${inner(fromEntries([...value].slice(0, 100)))}`;
    else if (value instanceof Set) text = `Set(${value.size}) ${inner([...value])}`;
    else if (value instanceof Message) text = inner(value.toJSON());
    else {
      const names = keysOf(value);
      const parts = names.slice(0, 100).map((name) => `${name}: ${inner(value[name])}`);
      text = parts.length === 0 ? "{}" : `{ ${parts.join(", ")}${names.length > 100 ? ", …" : ""} }`;
    }
    seen.delete(value);
    return text;
  }

  const line =
    (level) =>
    (...values) =>
      host.log(level, values.map((value) => inspect(value)).join(" "));

  const globals = {
    console: { log: line("log"), info: line("info"), warn: line("warn"), error: line("error"), debug: line("debug") },
    base64: {
      encode: (value) => host.encodeBase64(bytesOf(value)),
      decode: (text) => host.decodeUtf8(host.decodeBase64(String(text))),
      decodeBytes: (text) => host.decodeBase64(String(text)),
    },
    crypto: {
      hash: (value, algorithm = "sha256") => host.hash(String(algorithm), bytesOf(value)),
      hmac: (key, value, algorithm = "sha256") => host.hmac(String(algorithm), bytesOf(key), bytesOf(value)),
      randomUUID: () => host.randomUUID(),
    },
    url: { parse: parseUrl, build: buildUrl },
    store: {
      get: (key) => {
        const text = host.storeGet(String(key));
        return text === null ? undefined : parse(text);
      },
      set: (key, value) => {
        const text = stringify(value);
        if (text === undefined) throw new TypeError("store.set: the value has no JSON text");
        host.storeSet(String(key), text);
      },
      delete: (key) => {
        host.storeDelete(String(key));
      },
      keys: () => parse(host.storeKeys()),
    },
  };
  for (const name of keysOf(globals)) {
    defineProperty(globalThis, name, { value: Object.freeze(globals[name]), writable: true, configurable: true });
  }

  // Calls

  /** Of the last call that returned a promise. Promises of earlier calls may settle, too. */
  let awaited;

  return {
    invoke: (fn, name, input, ...bodies) => {
      const hook = HOOKS[name](parse(input), ...bodies);
      const returned = fn(...hook.args);
      if (returned === null || typeof returned !== "object" || typeof returned.then !== "function") {
        return hook.finish(returned);
      }
      const call = { state: "pending", value: undefined, finish: hook.finish };
      const settle = (state) => (value) => {
        call.state = state;
        call.value = value;
      };
      awaited = call;
      returned.then(settle("fulfilled"), settle("rejected"));
      return undefined;
    },
    settled: () => {
      const call = awaited;
      awaited = undefined;
      if (call.state === "pending") throw new Error("the hook waits for something that never happens");
      if (call.state === "rejected") throw call.value;
      return call.finish(call.value);
    },
  };
});
