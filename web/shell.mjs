/** What is around the page's code: its document and the manifest by which it is installed. All links are relative. */

const LIGHT = "#f7f6f3";
const DARK = "#0e141b";

/** `first` names the scripts (the one that begins, then those it imports) and the style that are needed at once. */
export function indexHtml({ first, version }) {
  const [entry, ...imports] = first.scripts;
  return `<!doctype html>
<html lang="en" data-version="${version}">
<head>
<meta charset="utf-8">
<title>Pilothouse</title>
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover, interactive-widget=resizes-content">
<meta name="color-scheme" content="light dark">
<meta name="theme-color" content="${LIGHT}" media="(prefers-color-scheme: light)">
<meta name="theme-color" content="${DARK}" media="(prefers-color-scheme: dark)">
<meta name="mobile-web-app-capable" content="yes">
<link rel="icon" href="icon.svg" type="image/svg+xml">
<link rel="apple-touch-icon" href="touch-192.png">
<link rel="manifest" href="manifest.webmanifest">
<link rel="stylesheet" href="${first.style}">
<script type="module" src="${entry}"></script>
${imports.map((name) => `<link rel="modulepreload" href="${name}">\n`).join("")}</head>
<body>
<div id="app"></div>
<noscript>
<p>Pilothouse needs JavaScript. Without it, the <code>pilothouse</code> command does the same in a terminal.</p>
</noscript>
</body>
</html>
`;
}

export function manifest() {
  const icon = (src, sizes, type, purpose = "any") => ({ src, sizes, type, purpose });
  const made = {
    name: "Pilothouse",
    short_name: "Pilothouse",
    description: "Watch, steer and approve coding agents.",
    start_url: ".",
    scope: ".",
    display: "standalone",
    background_color: LIGHT,
    theme_color: LIGHT,
    icons: [
      icon("icon.svg", "any", "image/svg+xml"),
      icon("icon-192.png", "192x192", "image/png"),
      icon("icon-512.png", "512x512", "image/png"),
      icon("maskable-512.png", "512x512", "image/png", "maskable"),
    ],
    shortcuts: [
      { name: "Approvals", url: "./#/approvals" },
      { name: "New session", url: "./#/new" },
    ],
  };
  return `${JSON.stringify(made, null, 2)}\n`;
}
