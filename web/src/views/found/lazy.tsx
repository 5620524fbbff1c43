/** What is fetched when somebody first wants something of a session that was begun elsewhere. */
import { type Wish, wish } from "../../app/found";
import { lazily } from "../../ui/lazy";

const Taking = lazily<{ wanted: Wish }>(() => import("./taking").then((part) => part.Taking));

/** Anywhere in the page, once. */
export function Wished() {
  const wanted = wish.value;
  return wanted && <Taking key={`${wanted.found.id} ${wanted.how}`} wanted={wanted} />;
}

export const Watched = lazily<{ sessionId: string }>(() => import("./watched").then((part) => part.Watched));
