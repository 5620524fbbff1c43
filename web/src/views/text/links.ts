/** What a block of Markdown gets once it is on the page: links that say where they lead, tables that scroll. */

export function finish(block: HTMLElement): void {
  for (const link of block.querySelectorAll<HTMLAnchorElement>("a[href]")) tellHost(link);
  for (const table of block.querySelectorAll("table")) wrap(table);
  for (const box of block.querySelectorAll<HTMLInputElement>("li > input:first-child, li > p > input:first-child")) {
    box.setAttribute("aria-label", box.checked ? "done" : "to do");
    box.closest("li")?.classList.add("md-task");
  }
}

/** A link whose words do not name the site it leads to says so itself. */
function tellHost(link: HTMLAnchorElement): void {
  const host = hostOf(link.href);
  if (host && !link.textContent.toLowerCase().includes(host.replace(/^www\./, ""))) link.dataset["host"] = host;
}

export function hostOf(address: string): string {
  try {
    return new URL(address).host;
  } catch {
    return "";
  }
}

/** In a box that a keyboard can scroll. */
function wrap(table: HTMLTableElement): void {
  if (table.parentElement?.classList.contains("md-table")) return;
  const box = document.createElement("div");
  box.className = "md-table";
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Table");
  table.replaceWith(box);
  box.append(table);
}
