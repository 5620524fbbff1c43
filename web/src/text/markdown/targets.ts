/**
 * Where a link in an agent's text may lead: elsewhere by http, https or mailto, or to a file for the page to open.
 *
 * A browser reads more into an address than is written there: it drops tabs and line ends, takes `\` for `/`, and
 * fills up `//host`. So what has anything like a scheme that is not one of these leads nowhere.
 */

export type Target = { readonly href: string } | { readonly path: string } | null;

const AWAY = /^(?:https?:\/\/|mailto:)/i;
const SCHEME = /^[^/?#]*:|^[\s\u0000-\u001f]*[/\\][\s\u0000-\u001f]*[/\\]/;
/** A file by its address, which some agents write: the path is what counts. */
const FILE = /^file:\/\/(?=\/[^/\\])/i;
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[a-z0-9+/=\s]*$/i;

export function targetOf(address: string): Target {
  if (AWAY.test(address)) return { href: address };
  if (FILE.test(address)) return { path: address.replace(FILE, "") };
  return !address || address.startsWith("#") || SCHEME.test(address) ? null : { path: address };
}

/** Pictures are those that came as data: any other would be a request to elsewhere. */
export const isPicture = (address: string): boolean => PICTURE.test(address);

/** What a link that leads elsewhere has: a window of its own, which knows nothing of this one. */
export const AWAY_ATTRIBUTES = { target: "_blank", rel: "noopener noreferrer" } as const;
