import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { printMarkup } from "./body-document.ts";

test("nested elements are indented; an element with only text stays on one line", () => {
  assert.equal(
    printMarkup('<?xml version="1.0"?><a x="1>2"><b>text</b><c/><d><e>1</e></d></a>', "xml"),
    ['<?xml version="1.0"?>', '<a x="1>2">', "  <b>text</b>", "  <c/>", "  <d>", "    <e>1</e>", "  </d>", "</a>"].join(
      "\n",
    ),
  );
});

test("HTML keeps lines of text together and the content of pre and script unchanged", () => {
  assert.equal(
    printMarkup("<!doctype html><body><p>Hello <b>you</b>, there</p><br><pre> a\n  b</pre><img src=x></body>", "html"),
    [
      "<!doctype html>",
      "<body>",
      "  <p>Hello <b>you</b>, there</p>",
      "  <br>",
      "  <pre> a\n  b</pre>",
      "  <img src=x>",
      "</body>",
    ].join("\n"),
  );
  assert.match(printMarkup("<script>if (a<b) { x('</p>') }</script>", "html"), /if \(a<b\) \{ x\('<\/p>'\) \}/u);
});

test("comments and CDATA are unchanged", () => {
  const printed = printMarkup("<a><!-- <b> --><![CDATA[<c>]]></a>", "xml");
  assert.ok(printed.includes("<!-- <b> -->"));
  assert.ok(printed.includes("<![CDATA[<c>]]>"));
});

test("printing preserves all characters except white space", () => {
  const part = fc.constantFrom(
    "<a>",
    "</a>",
    "<b c='>'>",
    "text",
    "<",
    ">",
    "<!--",
    "-->",
    "<br>",
    "<pre>",
    "</pre>",
    " ",
    "\n",
    "é",
  );
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 30 }),
      fc.constantFrom("xml" as const, "html" as const),
      (parts, language) => {
        const bare = (text: string) => text.replaceAll(/\s/gu, "");
        assert.equal(bare(printMarkup(parts.join(""), language)), bare(parts.join("")));
      },
    ),
  );
});

test("unclosed tags do not exhaust memory", () => {
  assert.ok(printMarkup("<a>".repeat(50_000), "xml").length < 50_000 * 90);
});

test("unterminated quotes do not stall the printer", () => {
  const started = performance.now();
  printMarkup(`<a b="${"x'".repeat(20_000)}`, "html");
  assert.ok(performance.now() - started < 3000);
});
