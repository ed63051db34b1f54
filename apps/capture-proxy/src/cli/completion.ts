import type { Command } from "commander";

/** Shells a completion script can be written for. */
export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** One command of the tree with what may follow it. */
interface Node {
  /** Words from the program's name on, without it: `traffic list`. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly flags: readonly {
    readonly name: string;
    readonly summary: string;
    readonly takesValue: boolean;
    readonly choices: readonly string[];
  }[];
}

/** A self-contained completion script for the whole command tree; completing starts no process. */
export function completionScript(program: Command, shell: Shell): string {
  const nodes = nodesOf(program, "");
  switch (shell) {
    case "bash":
      return bashScript(nodes);
    case "zsh":
      return `#compdef weir\nautoload -U +X bashcompinit && bashcompinit\n${bashScript(nodes)}`;
    case "fish":
      return fishScript(nodes);
  }
}

function nodesOf(command: Command, path: string): Node[] {
  const commands = command.commands.map((child) => ({
    name: child.name(),
    summary: child.summary() || child.description(),
  }));
  const flags = command.options
    .filter((option) => option.long !== undefined)
    .map((option) => ({
      name: option.long ?? "",
      summary: option.description,
      takesValue: option.required || option.optional,
      choices: option.argChoices ?? [],
    }));
  const node = {
    path,
    commands,
    flags: [...flags, { name: "--help", summary: "Show help", takesValue: false, choices: [] }],
  };
  return [node, ...command.commands.flatMap((child) => nodesOf(child, `${path} ${child.name()}`.trim()))];
}

function bashScript(nodes: readonly Node[]): string {
  const words = nodes.map((node) => {
    const all = [...node.commands.map(({ name }) => name), ...node.flags.map(({ name }) => name)];
    return `    ${quoted(node.path)}) words=${quoted(all.join(" "))} ;;`;
  });
  const paths = nodes.filter(({ path }) => path !== "").map(({ path }) => `    ${quoted(path)}) at=$next ;;`);
  const values = nodes.flatMap((node) =>
    node.flags
      .filter(({ takesValue }) => takesValue)
      .map((flag) => `    ${quoted(`${node.path} ${flag.name}`.trim())}) ${valueCompletion(flag.choices)} ;;`),
  );
  return `# Completion of weir. Load it with: source <(weir completion bash)
_weir() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local at="" next word words="" index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    if [[ $at == run || $word == -- ]] && [[ $word != -* || $word == -- ]]; then COMPREPLY=($(compgen -f -- "$current")); return; fi
    next=$at; [[ -n $next ]] && next+=" "; next+=$word
    case $next in
${paths.join("\n")}
    esac
  done
  case "\${at:+$at }$previous" in
${values.join("\n")}
  esac
  case $at in
${words.join("\n")}
  esac
  if [[ $at == run && $current != -* ]]; then COMPREPLY=($(compgen -c -- "$current")); return; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ \${#COMPREPLY[@]} -eq 0 && $current != -* ]] && COMPREPLY=($(compgen -f -- "$current"))
  return 0
}
complete -o filenames -F _weir weir
`;
}

function valueCompletion(choices: readonly string[]): string {
  const source = choices.length === 0 ? "-f" : `-W ${quoted(choices.join(" "))}`;
  return `COMPREPLY=($(compgen ${source} -- "$current")); return`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function fishScript(nodes: readonly Node[]): string {
  const lines = nodes.flatMap((node) => {
    const condition = fishCondition(node);
    const commands = node.commands.map(
      ({ name, summary }) => `complete -c weir -f -n ${fishQuoted(condition)} -a ${name} -d ${fishQuoted(summary)}`,
    );
    const flags = node.flags.map(({ name, summary, takesValue, choices }) => {
      const value = !takesValue ? "" : choices.length > 0 ? ` -x -a ${fishQuoted(choices.join(" "))}` : " -r";
      return `complete -c weir -n ${fishQuoted(condition)} -l ${name.slice(2)}${value} -d ${fishQuoted(firstSentence(summary))}`;
    });
    return [...commands, ...flags];
  });
  return `# Completion of weir. Load it with: weir completion fish | source\n${lines.join("\n")}\n`;
}

function fishCondition({ path, commands }: Node): string {
  const words = path.split(" ").filter((word) => word !== "");
  if (words.length === 0) return "__fish_use_subcommand";
  const seen = words.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");
  if (commands.length === 0) return seen;
  return `${seen}; and not __fish_seen_subcommand_from ${commands.map(({ name }) => name).join(" ")}`;
}

function firstSentence(text: string): string {
  return text.split(/[;(.]/, 1)[0]?.trim() ?? text;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll("\\", String.raw`\\`).replaceAll("'", String.raw`\'`)}'`;
}
