/** Files that a call changed, or would change: as the hub told it, else as the call's input says. */
import { fieldOf, first, isObject } from "../../model/json";
import { PATH_KEYS } from "../../model/tables.gen";
import type { Approval, DiffPreview, Json, ToolCall } from "../../model/wire.gen";
import { Changes, Diff, Patch, PreviewDiff } from "../diff/lazy";
import { useSource, useVersion } from "../text/source";
import { Generic } from "./generic";

export function Changed({ call }: { call: ToolCall }) {
  useVersion(call);
  const source = useSource();
  if (call.files?.length) return <Changes files={call.files} />;
  if (call.structured?.type === "file_diff") {
    const { path, diff, changeType } = call.structured;
    return <Patch path={path} patch={diff} kind={changeType} />;
  }
  const asked = previewOf(call, source.session.peek()?.lookup.approvals);
  if (asked) return <PreviewDiff preview={asked} />;
  const wanted = wishesOf(call.input);
  if (!wanted.length) return <Generic call={call} />;
  return (
    <>
      {wanted.map((wish, at) => (
        <Diff key={at} {...wish} />
      ))}
    </>
  );
}

/** The change as it was shown to whoever decided about it. */
function previewOf({ approvalIds = [] }: ToolCall, approvals?: ReadonlyMap<string, Approval>): DiffPreview | undefined {
  const previews = approvalIds.map((id) => approvals?.get(id)?.preview);
  return previews.find((preview) => preview?.type === "diff");
}

interface Wish {
  path: string;
  before: string | null;
  after: string;
}

const BEFORE = ["old_string", "old_str", "oldText", "oldString", "old_text"];
const AFTER = ["new_string", "new_str", "newText", "newString", "new_text", "content", "file_text", "contents"];
/** Changes that are shown of one call. */
const MOST = 20;

/** What the input asks to be written: one text, or a list of them. */
export function wishesOf(input: Json | undefined, path = ""): Wish[] {
  if (!isObject(input)) return [];
  const named = first(input, PATH_KEYS);
  const place = typeof named === "string" ? named : path;
  const [before, after] = [first(input, BEFORE), first(input, AFTER)];
  if (typeof after === "string") return [{ path: place, before: typeof before === "string" ? before : null, after }];
  const list = ["edits", "files", "changes"].map((key) => fieldOf(input, key)).find(Array.isArray) ?? [];
  return list.slice(0, MOST).flatMap((one) => wishesOf(one, place));
}
