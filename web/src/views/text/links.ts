/** What a block of Markdown has beside its words: links that say where they lead, tables that scroll, tasks. */

/** All of it, for HTML that somebody else wrote. */
export function finish(block: Element): void {
  tellHosts(block);
  for (const link of block.querySelectorAll("a[data-path]")) {
    link.setAttribute("role", "link");
    link.setAttribute("tabindex", "0");
  }
  for (const table of block.querySelectorAll("table")) wrap(table);
  for (const box of block.querySelectorAll<HTMLInputElement>("li > input:first-child, li > p > input:first-child")) {
    box.setAttribute("aria-label", taskLabel(box.checked));
    box.closest("li")?.classList.add("md-task");
  }
}

const BOX = 'class="md-table" tabindex="0" role="group" aria-label="Table"';
const TASK = /<li>(<p>)?<input (checked="" )?/g;

/** The same but links, in HTML of known tags and escaped text; links need what a browser reads into their addresses. */
export const finished = (html: string): string =>
  html
    .replaceAll("<table>", `<div ${BOX}><table>`)
    .replaceAll("</table>", "</table></div>")
    .replaceAll("<a data-path=", '<a role="link" tabindex="0" data-path=')
    .replace(
      TASK,
      (_, paragraph = "", checked = "") =>
        `<li class="md-task">${paragraph}<input ${checked}aria-label="${taskLabel(!!checked)}" `,
    );

const taskLabel = (done: boolean): string => (done ? "done" : "to do");

/** A link whose words do not name the site it leads to says so itself. */
export function tellHosts(block: Element): void {
  for (const link of block.querySelectorAll<HTMLAnchorElement>("a[href]")) tellHost(link);
}

function tellHost(link: HTMLAnchorElement): void {
  const host = hostOf(link.href);
  if (host && !link.textContent.toLowerCase().includes(host.replace(/^www\./, ""))) link.dataset["host"] = host;
}

/** Told, with the path, when a link to a file is followed. */
export const FOLLOWED = "file-followed";

/** Follow the link to a file that was pressed, if one was. */
export function follow(event: Event): void {
  const link = event.target instanceof Element ? event.target.closest("a[data-path]") : null;
  const path = link?.getAttribute("data-path");
  if (!path) return;
  event.preventDefault();
  link?.dispatchEvent(new CustomEvent(FOLLOWED, { bubbles: true, detail: path }));
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
