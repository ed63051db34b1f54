import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript, javascriptLanguage } from "@codemirror/lang-javascript";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import type { ScriptValidation } from "@headworks/capture-contract";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { readScriptApi, scriptCompletion, standardCompletion } from "./script-completion.ts";

/** Colours come from the theme's variables, so that a change of theme needs no change here. */
const COLORS = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.self, tags.null, tags.bool], color: "var(--syntax-word)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--syntax-string)" },
  { tag: [tags.number], color: "var(--syntax-number)" },
  { tag: [tags.comment], color: "var(--syntax-note)", fontStyle: "italic" },
  {
    tag: [tags.propertyName, tags.function(tags.variableName), tags.definition(tags.variableName)],
    color: "var(--syntax-key)",
  },
  { tag: [tags.invalid], color: "var(--server)" },
]);

const LOOK = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--panel)", fontSize: "12.5px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0 24px" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--ink)", borderLeftWidth: "1.5px" },
  ".cm-gutters": {
    color: "var(--ink-3)",
    backgroundColor: "var(--sunken)",
    borderRight: "1px solid var(--line-soft)",
  },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 8px 0 12px" },
  ".cm-gutter-lint": { width: "16px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 6%, transparent)" },
  "&.cm-focused .cm-activeLineGutter": { color: "var(--ink)", backgroundColor: "var(--hover)" },
  "& > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground":
    { background: "color-mix(in srgb, var(--accent) 28%, transparent)" },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in srgb, var(--accent) 16%, transparent)" },
  "&.cm-focused .cm-matchingBracket, .cm-matchingBracket": {
    backgroundColor: "color-mix(in srgb, var(--accent) 22%, transparent)",
    outline: "1px solid var(--accent-line)",
  },
  "&.cm-focused .cm-nonmatchingBracket, .cm-nonmatchingBracket": { backgroundColor: "var(--server-soft)" },
  ".cm-searchMatch": { backgroundColor: "var(--mark)", color: "var(--ink)" },
  ".cm-searchMatch-selected": { outline: "1px solid var(--accent)" },
  ".cm-panels": { color: "var(--ink)", backgroundColor: "var(--sunken)" },
  ".cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panel.cm-search": { padding: "6px 32px 6px 8px", fontFamily: "var(--font-sans)" },
  ".cm-panel.cm-search label": { display: "inline-flex", alignItems: "center", gap: "4px", fontSize: "12px" },
  ".cm-panel.cm-search input[type=checkbox]": { margin: "0", accentColor: "var(--accent)" },
  ".cm-textfield": {
    height: "26px",
    color: "var(--ink)",
    backgroundColor: "var(--panel)",
    border: "1px solid var(--line-strong)",
    borderRadius: "var(--radius)",
    fontSize: "12px",
  },
  ".cm-button": {
    height: "26px",
    color: "var(--ink)",
    background: "var(--raise)",
    border: "1px solid var(--line)",
    borderRadius: "var(--radius)",
    fontSize: "12px",
    cursor: "pointer",
  },
  ".cm-panel.cm-search [name=close]": { right: "8px", top: "6px", color: "var(--ink-2)", fontSize: "16px" },
  ".cm-tooltip": {
    color: "var(--ink)",
    backgroundColor: "var(--raise)",
    border: "1px solid var(--line)",
    borderRadius: "var(--radius)",
    boxShadow: "var(--shadow)",
    overflow: "hidden",
  },
  ".cm-tooltip.cm-tooltip-autocomplete": { overflow: "visible" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { maxHeight: "240px", fontFamily: "var(--font-mono)", fontSize: "12px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    color: "var(--ink)",
    backgroundColor: "var(--selected)",
  },
  ".cm-completionDetail": { color: "var(--ink-3)", fontStyle: "normal" },
  ".cm-completionMatchedText": { color: "var(--accent)", textDecoration: "none", fontWeight: "600" },
  ".cm-tooltip.cm-completionInfo": {
    maxWidth: "320px",
    padding: "6px 10px",
    fontSize: "12px",
    whiteSpace: "pre-wrap",
  },
  ".cm-diagnostic": { padding: "6px 10px", fontFamily: "var(--font-sans)", fontSize: "12px" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--server)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--server)",
    textUnderlineOffset: "3px",
  },
  ".cm-lint-marker-error": {
    content: "''",
    width: "8px",
    height: "8px",
    margin: "6px 4px",
    borderRadius: "50%",
    backgroundColor: "var(--server)",
  },
});

const READING: Extension = [
  lineNumbers(),
  highlightSpecialChars(),
  bracketMatching(),
  javascript(),
  syntaxHighlighting(COLORS),
  LOOK,
];

const WRITING: Extension = [
  lintGutter(),
  history(),
  drawSelection(),
  highlightActiveLine(),
  highlightActiveLineGutter(),
  highlightSelectionMatches(),
  closeBrackets(),
  indentOnInput(),
  indentUnit.of("  "),
  autocompletion({ icons: false }),
  search({ top: true }),
  EditorState.phrases.of({
    next: "Next",
    previous: "Previous",
    all: "All",
    "match case": "Match case",
    regexp: "Regular expression",
    "by word": "Whole word",
    replace: "Replace",
    "replace all": "Replace all",
  }),
  javascriptLanguage.data.of({ autocomplete: standardCompletion }),
  keymap.of([
    ...closeBracketsKeymap,
    ...completionKeymap,
    ...searchKeymap,
    ...historyKeymap,
    ...lintKeymap,
    ...defaultKeymap,
    indentWithTab,
  ]),
];

/** Marks a change that is not made in the editor, such as discarding edits. */
const Replaced = Annotation.define<boolean>();

/** The place of a syntax error; from its column to the end of the word there. */
function diagnosticsOf(state: EditorState, { valid, error, line, column }: ScriptValidation): readonly Diagnostic[] {
  if (valid) return [];
  const at = state.doc.line(Math.min(Math.max(1, line ?? 1), state.doc.lines));
  const start = Math.min(at.from + Math.max(0, (column ?? 1) - 1), at.to);
  // An error at the end of a line is shown at its last character.
  const from = start === at.to && start > at.from ? start - 1 : start;
  const word = /^[\w$]+/u.exec(state.sliceDoc(from, at.to))?.[0].length ?? 1;
  return [{ from, to: Math.min(from + word, state.doc.length), severity: "error", message: error ?? "Syntax error" }];
}

/** A code editor for JavaScript. Tab indents; after Escape the next Tab leaves the editor. */
export function SourceEditor({
  label,
  value,
  onChange,
  types,
  validation,
}: {
  readonly label: string;
  readonly value: string;
  /** Absent: the source can only be read. */
  readonly onChange?: ((value: string) => void) | undefined;
  /** TypeScript declarations of the API that is completed. */
  readonly types?: string | undefined;
  /** Result for `source`. */
  readonly validation?: (ScriptValidation & { readonly source: string }) | undefined;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const completion = useRef(new Compartment());
  const change = useRef(onChange);
  const first = useRef({ label, value, isWritable: onChange !== undefined });
  useEffect(() => {
    change.current = onChange;
  });
  useEffect(() => {
    if (host.current === null) return undefined;
    const { isWritable } = first.current;
    const editor = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: first.current.value,
        extensions: [
          READING,
          isWritable ? WRITING : [EditorState.readOnly.of(true), EditorView.editable.of(false)],
          completion.current.of([]),
          EditorView.contentAttributes.of({
            "aria-label": first.current.label,
            ...(isWritable
              ? { "aria-description": "Tab indents. Press Escape, then Tab, to leave the editor." }
              : { tabindex: "0", role: "textbox", "aria-readonly": "true" }),
          }),
          EditorView.updateListener.of((update) => {
            const isReplaced = update.transactions.some((each) => each.annotation(Replaced) === true);
            if (update.docChanged && !isReplaced) change.current?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => {
      view.current = null;
      editor.destroy();
    };
  }, []);
  useEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.doc.toString() === value) return;
    editor.dispatch({
      changes: { from: 0, to: editor.state.doc.length, insert: value },
      annotations: Replaced.of(true),
    });
  }, [value]);
  useEffect(() => {
    const source = types === undefined ? null : scriptCompletion(readScriptApi(types));
    view.current?.dispatch({
      effects: completion.current.reconfigure(
        source === null ? [] : javascriptLanguage.data.of({ autocomplete: source }),
      ),
    });
  }, [types]);
  useEffect(() => {
    const editor = view.current;
    // The text may have changed since it was checked.
    if (editor === null || validation === undefined || editor.state.doc.toString() !== validation.source) return;
    editor.dispatch(setDiagnostics(editor.state, diagnosticsOf(editor.state, validation)));
  }, [validation]);
  return <div ref={host} style={{ height: "100%", minHeight: 0, overflow: "hidden" }} />;
}
