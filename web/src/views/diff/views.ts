/** All that the lazy chunk offers. */
export { Changes, FileChangeView, PreviewDiff } from "./changes";
export { Diff, Patch } from "./diff";
