/** The file behind a link that somebody followed in a text of this session. */
import { useEffect, useState } from "preact/hooks";
import { lazily } from "../../ui/lazy";
import { FOLLOWED } from "../text/links";

const FileLook = lazily<{ session: string; place: string; close(): void }>(() =>
  import("./look").then((part) => part.FileLook),
);

export function Followed({ session, within }: { session: string; within: string }) {
  const [place, setPlace] = useState<string | null>(null);
  useEffect(() => {
    const followed = (event: Event) => setPlace(placeIn((event as CustomEvent<string>).detail, within));
    document.addEventListener(FOLLOWED, followed);
    return () => document.removeEventListener(FOLLOWED, followed);
  }, [within]);
  return place === null ? null : <FileLook session={session} place={place} close={() => setPlace(null)} />;
}

/** A line, as links name it at the end of a path. */
const LINE = /(?:#L\d+(?:-L?\d+)?|:\d+(?::\d+)?)$/;

/** The path in the session's directory: links may be written as in an address, and name a line. */
export function placeIn(link: string, within: string): string {
  const path = decoded(link.replace(LINE, "")).replace(/^(?:\.\/)+/, "");
  const root = within.replace(/\/+$/, "");
  return root && path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
