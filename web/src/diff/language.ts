/** The language of a file by its name, as highlight.js calls it; "" when nobody knows. */

const BY_EXTENSION: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries({
    bash: "sh bash zsh ksh bats",
    c: "c h",
    cpp: "cc cpp cxx hh hpp hxx ino",
    csharp: "cs csx",
    css: "css",
    dart: "dart",
    diff: "diff patch",
    dockerfile: "dockerfile",
    elixir: "ex exs",
    go: "go",
    graphql: "graphql gql",
    haskell: "hs",
    ini: "ini cfg conf toml properties editorconfig",
    java: "java",
    javascript: "js jsx mjs cjs",
    json: "json jsonc json5 ndjson jsonl webmanifest",
    kotlin: "kt kts",
    less: "less",
    lua: "lua",
    makefile: "mk mak makefile",
    markdown: "md mdx markdown",
    perl: "pl pm",
    php: "php",
    plaintext: "txt text log",
    protobuf: "proto",
    python: "py pyi pyw",
    r: "r",
    ruby: "rb rake gemspec gemfile rakefile",
    rust: "rs",
    scala: "scala sc",
    scss: "scss sass",
    sql: "sql",
    swift: "swift",
    typescript: "ts tsx mts cts",
    xml: "html htm xml svg xhtml vue svelte plist",
    yaml: "yaml yml",
  }).flatMap(([language, extensions]) => extensions.split(" ").map((one) => [one, language])),
);

export function languageOf(path: string): string {
  const name = path.split(/[/\\]/).at(-1)!.toLowerCase();
  const extension = name.split(".").at(-1)!;
  return Object.hasOwn(BY_EXTENSION, extension) ? BY_EXTENSION[extension]! : "";
}
