/**
 * Where browsers let only trusted text become markup or code, this is who vouches for it, and for what: Markdown blocks
 * (cleaned, or made of known tags and escaped text), and the address of the service worker. There must be no third.
 */
interface Rules {
  createHTML?(html: string): string;
  createScriptURL?(url: string): string;
}

interface Policy {
  createHTML(html: string): string;
  createScriptURL(url: string): string;
}

interface TrustedTypes {
  createPolicy(name: string, rules: Rules): Policy;
}

const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
const policy = types?.createPolicy("pilothouse", {
  createHTML: (html) => html,
  createScriptURL: (url) => {
    if (url !== "sw.js") throw new Error("no such worker");
    return url;
  },
});

/** HTML of Markdown that is harmless. */
export const sanitisedHtml = (html: string): string => policy?.createHTML(html) ?? html;
export const workerUrl = (url: "sw.js"): string => policy?.createScriptURL(url) ?? url;
