/**
 * Files that are dropped onto the page.
 *
 * They are taken wherever they fall: who aims beside the composer means it all the same, and a browser left alone would
 * leave the page for the file. Text that is dragged goes its own way.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks";

const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes("Files") ?? false;

/** Whether files are being dragged over the page. */
export function useDropped(take: (files: File[]) => void): boolean {
  const [over, setOver] = useState(false);
  const now = useRef(take);
  now.current = take;
  useLayoutEffect(() => {
    const moved = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    // there is nothing beside the page to go to
    const left = ({ relatedTarget }: DragEvent) => relatedTarget === null && setOver(false);
    const dropped = (event: DragEvent) => {
      setOver(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      now.current([...(event.dataTransfer?.files ?? [])]);
    };
    window.addEventListener("dragover", moved);
    window.addEventListener("dragleave", left);
    window.addEventListener("drop", dropped);
    return () => {
      window.removeEventListener("dragover", moved);
      window.removeEventListener("dragleave", left);
      window.removeEventListener("drop", dropped);
    };
  }, []);
  return over;
}
