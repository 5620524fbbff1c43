/**
 * Files that fall where nobody takes them. A browser left alone would leave the page for the file, and what was typed
 * into it would be gone.
 */
export function catchFiles(target: Window = window): void {
  const held = (event: DragEvent) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    if (!document.querySelector(".composer")) event.dataTransfer.dropEffect = "none";
  };
  target.addEventListener("dragover", held);
  target.addEventListener("drop", held);
}
