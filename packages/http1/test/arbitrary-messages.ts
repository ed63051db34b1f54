import fc from "fast-check";

const TOKEN = "!#$%&'*+-.^_`|~0189azAZ".split("");
const ODD_BYTES = [
  "\r",
  "\n",
  "\0",
  " ",
  "\t",
  ":",
  ",",
  ";",
  "\x0b",
  "\x7f",
  "\x80",
  "\xff",
  "\r\n",
  "\r\n\r\n",
  "0",
  "f",
];

const token = fc.string({ unit: fc.constantFrom(...TOKEN), minLength: 1, maxLength: 12 });
const value = fc.string({
  unit: fc.constantFrom("a", "Z", "0", " ", "\t", ",", ";", "=", '"', ":", "/", "\x80", "\xe9", "\xff"),
  maxLength: 30,
});

const framing = fc.constantFrom(
  "",
  "Content-Length: 0\r\n",
  "Content-Length: 3\r\n",
  "content-length:   0003\t\r\n",
  "Transfer-Encoding: chunked\r\n",
  "transfer-encoding:CHUNKED\r\n",
  "Transfer-Encoding:\t chunked \r\n",
  "Transfer-Encoding: chunked\t\r\n",
  "Content-Length: 3\r\nContent-Length: 3\r\n",
  "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
  "Transfer-Encoding: gzip, chunked\r\n",
  "Content-Length: 3, 3\r\n",
  "Content-Length : 3\r\n",
  "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
);

const connection = fc.constantFrom(
  "",
  "Connection: close\r\n",
  "Connection: keep-alive\r\n",
  "Connection: keep-alive, close\r\n",
  "Keep-Alive: timeout=5\r\n",
);

const body = fc.constantFrom(
  "",
  "abc",
  "abcd",
  "0\r\n\r\n",
  "3\r\nabc\r\n0\r\n\r\n",
  "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
  "3\r\nabc\r\n0\r\nX: y\r\n\r\n",
  "3;x=y\r\nabc\r\n0\r\n\r\n",
  "3\nabc\r\n0\r\n\r\n",
  "3 \r\nabc\r\n0\r\n\r\n",
  "4\r\nabc\r\n0\r\n\r\n",
);

const fields = fc
  .array(fc.tuple(token, value), { maxLength: 6 })
  .map((pairs) => pairs.map(([name, text]) => `${name}: ${text}\r\n`).join(""));

/** Near-valid requests: often valid, often with one fault. */
export function nearRequests(methods: readonly string[]): fc.Arbitrary<Buffer> {
  return withFaults(
    fc
      .tuple(
        fc.constantFrom(...methods),
        fc.constantFrom("/", "/a/b?c=d", "//x", "*", "http://a.test/x", "http://a.test", "a.test:443", "/%20", "/{}|"),
        fc.constantFrom("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0"),
        fc.constantFrom(
          "Host: a.test\r\n",
          "Host: a.test\r\n",
          "Host: a.test:80\r\n",
          "host:[::1]\r\n",
          "",
          "Host: a b\r\n",
        ),
        fields,
        framing,
        connection,
        body,
      )
      .map(
        ([method, target, version, host, others, length, options, content]) =>
          `${method} ${target} ${version}\r\n${host}${others}${length}${options}\r\n${content}`,
      ),
  );
}

/** Near-valid responses. */
export const nearResponses: fc.Arbitrary<Buffer> = withFaults(
  fc
    .tuple(
      fc.constantFrom("HTTP/1.1", "HTTP/1.1", "HTTP/1.0"),
      fc.constantFrom("200 OK", "204 No Content", "304 Not Modified", "404 ", "500 \xe9", "200", "99 x"),
      fields,
      framing,
      connection,
      body,
    )
    .map(
      ([version, status, others, length, options, content]) =>
        `${version} ${status}\r\n${others}${length}${options}\r\n${content}`,
    ),
);

/** The text, possibly with one to three small faults: bytes inserted, removed, doubled or replaced. */
function withFaults(texts: fc.Arbitrary<string>): fc.Arbitrary<Buffer> {
  const fault = fc.tuple(
    fc.constantFrom("insert", "delete", "replace", "double"),
    fc.nat(),
    fc.constantFrom(...ODD_BYTES),
  );
  const faults = fc.oneof(fc.constant([]), fc.array(fault, { maxLength: 3 }));
  return fc.tuple(texts, faults).map(([text, list]) => {
    let result = text;
    for (const [kind, position, odd] of list) {
      const at = position % (result.length + 1);
      const removed = kind === "delete" || kind === "replace" ? 1 : 0;
      const added = kind === "double" ? result.slice(at, at + 4) : kind === "delete" ? "" : odd;
      result = result.slice(0, at) + added + result.slice(at + removed);
    }
    return Buffer.from(result, "latin1");
  });
}

/** The input split at the given positions. */
export function cutAt(input: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [...new Set(places.map((place) => place % (input.length + 1)))].toSorted((a, b) => a - b);
  const pieces: Buffer[] = [];
  let from = 0;
  for (const to of [...sorted, input.length]) {
    if (to > from) pieces.push(input.subarray(from, to));
    from = to;
  }
  return pieces;
}
